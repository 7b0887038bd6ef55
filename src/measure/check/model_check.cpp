#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "models/model.h"
#include "models/model_options.h"
#include "models/named_tensors.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "src/measure/check/checks.h"
#include "src/measure/check/closed_fill.h"
#include "src/measure/check/json_place.h"
#include "src/measure/check/tolerance.h"
#include "src/train/compute_policy.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The model that a golden file is about.
struct GoldenModel {
  std::string name;                   // as the file names it
  std::vector<std::string> settings;  // of the section `model`, as --set takes them
  int64_t num_classes;
  std::vector<int64_t> image;  // [channels, height, width]; empty: what the model was made for
};

// The settings that a name stands for: "resnet18"; "densenet_bc_40_40", the papers' DenseNet-BC of depth 40 and growth
// 40; "..._normed" with a normalised head.
std::vector<std::string> settings_named(std::string name) {
  const std::string normalised = "_normed", papers = "densenet_bc_";
  std::vector<std::string> settings;
  if (name.ends_with(normalised)) {
    name.resize(name.size() - normalised.size());
    settings.emplace_back("model.head=normalised");
  }
  const size_t between = name.rfind('_');
  if (name.starts_with(papers) && between >= papers.size()) {
    settings.emplace_back("model.name=densenet");
    settings.push_back("model.depth=" + name.substr(papers.size(), between - papers.size()));
    settings.push_back("model.growth=" + name.substr(between + 1));
  } else {
    settings.push_back("model.name=" + name);
  }
  return settings;
}

// The model of a NAME.json, by `model`, `num_classes`, `input_shape`, and `settings` where its name does not imply
// them.
GoldenModel golden_model(const json& golden) {
  const auto name = golden.at("model").get<std::string>();
  const auto shape = golden.at("input_shape").get<std::vector<int64_t>>();
  if (shape.size() != 4) throw std::invalid_argument("/input_shape: expected [batch, channels, height, width]");
  return {name,
          golden.contains("settings") ? golden.at("settings").get<std::vector<std::string>>() : settings_named(name),
          golden.at("num_classes").get<int64_t>(),
          {shape.begin() + 1, shape.end()}};
}

// With initial weights from ATen's generator. Throws ConfigError where there is no such model.
std::shared_ptr<Model> build(const ModelRegistry& registry, const GoldenModel& golden) {
  const config::Config config = config::load({{model_section(registry)}, {}}, {}, golden.settings);
  const ModelEntry& entry = registry.at(config.get<std::string>("model.name"));
  ModelContext context = entry.usual;
  context.num_classes = golden.num_classes;
  if (!golden.image.empty()) {
    context.channels = golden.image.at(0);
    context.height = golden.image.at(1);
    context.width = golden.image.at(2);
  }
  return entry.make(config, context);
}

// --- The entries of a state_dict, against a recorded list of them.

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  if (lines.empty()) throw DataError(file.string() + ": cannot be read, or is empty");
  return lines;
}

std::vector<std::string> lines_of(const Model& model) {
  std::set<std::string> buffers;
  for (const auto& item : model.named_buffers()) buffers.insert(item.key());
  std::vector<std::string> lines;
  for (const auto& [name, tensor] : state_dict(model)) {
    const char* dtype = tensor.is_floating_point() ? "float32" : "int64";
    lines.push_back(fmt::format("{}\t{}\t[{}]\t{}{}", lines.size(), dtype, fmt::join(tensor.sizes().vec(), ","), name,
                                buffers.count(name) ? "\tbuffer" : ""));
  }
  return lines;
}

// The model that a list NAME.params.txt is about: by the NAME.json beside it, or by its first line, "# NAME, 1000
// classes: ...". Throws DataError that names the file where it is missing or has no such line.
GoldenModel listed_model(const fs::path& file) {
  constexpr int64_t kMostClasses = 1'000'000;
  const fs::path results = file.parent_path() / (file.stem().stem().string() + ".json");
  if (fs::exists(results)) return golden_model(read_json(results));
  const std::string first = lines_of(file).front();
  const size_t comma = first.find(", ");
  int64_t classes = 0;
  if (first.starts_with("# ") && comma != std::string::npos) {
    std::from_chars(first.data() + comma + 2, first.data() + first.size(), classes);
  }
  if (classes <= 0 || classes > kMostClasses || first.find(" classes:", comma) == std::string::npos) {
    throw DataError(fmt::format("{}:1: expected \"# NAME, N classes: ...\", got \"{:.60}\"", file.string(), first));
  }
  const std::string name = first.substr(2, comma - 2);
  return {name, settings_named(name), classes, {}};
}

// Compares every entry's place, dtype, shape, name and kind (parameter or buffer). The error is the number of lines
// that differ; the note has the first.
CheckRow check_parameter_list(const fs::path& file, const std::string& name, const Model& model) {
  std::vector<std::string> expected = lines_of(file);
  std::erase_if(expected, [](const std::string& line) { return line.starts_with('#'); });
  const std::vector<std::string> got = lines_of(model);
  double wrong = 0;
  std::string note;
  for (size_t i = 0; i < std::max(expected.size(), got.size()); ++i) {
    const std::string wanted = i < expected.size() ? expected[i] : "no entry";
    const std::string have = i < got.size() ? got[i] : "no entry";
    if (wanted == have) continue;
    if (wrong++ == 0) note = fmt::format("{}: entry {}: expected {}; got {}", file.string(), i, wanted, have);
  }
  return {name, fmt::format("names and shapes of {} entries", expected.size()), wrong, 0, wrong == 0, note};
}

// --- Initial weights, against recorded distributions.

// Standard errors between a sample of `n` values and its distribution. Uniform values end at sqrt(3) standard
// deviations; of normal ones, one in twelve lies beyond.
double standard_errors(const at::Tensor& values, double mean, double deviation, bool uniform) {
  const auto n = static_cast<double>(values.numel());
  const double of_mean = std::abs(values.mean().item<double>() - mean) / (deviation / std::sqrt(n));
  const double error_of_deviation = deviation * std::sqrt((uniform ? 0.8 : 2.0) / (4 * n));
  const double of_deviation = std::abs(values.std(/*unbiased=*/false).item<double>() - deviation) / error_of_deviation;
  const double end = (values - mean).abs().max().item<double>() / (deviation * std::sqrt(3.0));
  constexpr double kRounding = 1e-6, kEnough = 1000;
  const bool is_other = uniform ? end > 1 + kRounding : n >= kEnough && end <= 1;
  return is_other ? INFINITY : std::max(of_mean, of_deviation);
}

// Columns of uniform values around 0, scaled to length 1: the deviation follows from the length, the ends vary a
// little.
double errors_of_columns(const at::Tensor& values, double deviation) {
  constexpr double kRounding = 1e-6, kLeastEnd = 0.95, kMostEnd = 1.2;
  const double length = (values.norm(2, 0) - 1).abs().max().item<double>() / kRounding;
  const double of_mean =
      std::abs(values.mean().item<double>()) / (deviation / std::sqrt(static_cast<double>(values.numel())));
  const double end = values.abs().max().item<double>() / (deviation * std::sqrt(3.0));
  return end >= kLeastEnd && end <= kMostEnd ? std::max(length, of_mean) : INFINITY;
}

// Compares every parameter that the file (NAME.init.json) lists: constants exactly; of the others mean and standard
// deviation, in standard errors, and whether normal and uniform values are such. The error is the largest number of
// standard errors. Throws DataError naming the file where it is malformed.
CheckRow check_initial_weights(const fs::path& file, const std::string& name, const Model& model) {
  // There are some hundred parameters, all drawn from one seed: a right model exceeds this with one seed in 100,000.
  constexpr double kStandardErrors = 5.5;
  const json recorded = read_json(file);
  const auto parameters = model.named_parameters();
  WorstError worst;
  for (const JsonPlace& expected : JsonPlace(recorded, file)["parameters"].elements()) {
    const at::Tensor* parameter = parameters.find(expected["name"].text());
    const std::string distribution = expected["distribution"].text();
    const double mean = expected["expected_mean"].real(), deviation = expected["expected_std"].real();
    double error = INFINITY;
    if (parameter && deviation == 0) {
      error = (*parameter == mean).all().item<bool>() ? 0 : INFINITY;
    } else if (parameter) {
      const bool scaled = distribution.find("scaled to norm 1") != std::string::npos;
      const at::Tensor values = parameter->detach().to(at::kDouble);
      error = scaled ? errors_of_columns(values, deviation)
                     : standard_errors(values, mean, deviation, distribution.starts_with("uniform"));
    }
    worst.add(error, expected["name"].text() + ": " + distribution);
  }
  return worst.row(name, "initial weights, standard errors", kStandardErrors);
}

// --- Logits, gradients and buffers, against recorded ones.

double largest_difference(const at::Tensor& got, const json& expected) {
  const at::Tensor flat = got.detach().to(at::kCPU, at::kDouble).contiguous().flatten();
  std::vector<double> values;
  for (const json& row : expected) {
    if (row.is_array()) {
      for (const json& value : row) values.push_back(value.get<double>());
    } else {
      values.push_back(row.get<double>());
    }
  }
  if (static_cast<int64_t>(values.size()) != flat.numel()) return INFINITY;
  return (flat - at::tensor(values, at::kDouble)).abs().max().item<double>();
}

double norm_difference(const at::Tensor& tensor, const json& expected) {
  return std::abs(tensor.detach().to(at::kCPU, at::kDouble).norm().item<double>() - expected.at("l2").get<double>());
}

// The largest difference in the digest of a tensor that is too large to be recorded whole: norm, first elements, one
// product over all elements; a digest has one of the last two, or both.
double digest_difference(const at::Tensor& tensor, const json& expected, uint32_t stream = 0) {
  const at::Tensor flat = tensor.detach().to(at::kCPU, at::kDouble).contiguous().flatten();
  WorstError worst;
  if (!expected.contains("first8") && !expected.contains("dot")) worst.add(INFINITY, "");
  worst.add(norm_difference(flat, expected), "");
  if (expected.contains("first8")) worst.add(largest_difference(flat.slice(0, 0, 8), expected.at("first8")), "");
  if (expected.contains("dot")) {
    const double dot = flat.dot(closed_noise(stream, flat.numel())).item<double>();
    worst.add(std::abs(dot - expected.at("dot").get<double>()), "");
  }
  return worst.error;
}

// How far float32 may be from float64: a few times what the file records (the larger with oneDNN's convolutions and
// without), since the order of sums depends on the processor. PyTorch itself, which made the files, was up to 1.7 times
// as far on another machine, with AVX2. Where the files' deviation is of the size of single roundings, it says little.
double allowed_deviation(const json& golden, const std::string& what, double otherwise) {
  constexpr double kOtherProcessors = 3, kRoundings = 1e-6;
  double deviation = 0;
  for (const char* how : {"deviation_float32_from_float64", "deviation_float32_without_mkldnn_from_float64"}) {
    if (golden.contains(how)) deviation = std::max(deviation, golden.at(how).at(what).get<double>());
  }
  return deviation > 0 ? std::max(kOtherProcessors * deviation, kRoundings) : otherwise;
}

// Collects the rows of one file.
class ModelCheck {
 public:
  ModelCheck(const ModelRegistry& registry, at::Device device, const fs::path& file, const json& golden)
      : registry_(registry),
        device_(device),
        file_(file),
        golden_(golden),
        model_(golden_model(golden)),
        shape_(golden.at("input_shape").get<std::vector<int64_t>>()),
        salt_(golden.value("salt", 0U)) {}

  std::vector<CheckRow> run() {
    check_entries();
    check_eval(at::kDouble);
    check_eval(at::kFloat);
    check_training(at::kDouble);
    check_training(at::kFloat);
    return rows_;
  }

 private:
  static constexpr uint32_t kFirstGradientStream = 2000;

  void add(const std::string& what, const WorstError& worst, double tolerance) {
    rows_.push_back(worst.row(model_.name, what, tolerance));
  }

  std::shared_ptr<Model> filled(at::ScalarType dtype) const {
    auto model = build(registry_, model_);
    closed_fill(state_dict(*model), salt_);
    model->to(device_, dtype);
    return model;
  }

  at::Tensor images(at::ScalarType dtype) const { return closed_input(shape_, salt_).to(device_, dtype); }

  fs::path beside(const char* ending) const { return file_.parent_path() / (file_.stem().string() + ending); }

  void check_entries() {
    constexpr uint64_t kSeed = 4;
    at::manual_seed(kSeed);
    const auto model = build(registry_, model_);
    if (exists(beside(".params.txt"))) {
      rows_.push_back(check_parameter_list(beside(".params.txt"), model_.name, *model));
    }
    if (exists(beside(".init.json"))) {
      rows_.push_back(check_initial_weights(beside(".init.json"), model_.name, *model));
    }
    const int64_t expected = golden_.at("parameters").get<int64_t>(), got = model->num_parameters();
    add("number of parameters", {static_cast<double>(std::abs(got - expected)), std::to_string(got)}, 0);
    const bool is_filled = closed_fill(state_dict(*model), salt_) == golden_.at("fill_sha256").get<std::string>();
    add("filled weights", {is_filled ? 0.0 : 1.0, ""}, 0);
  }

  void check_eval(at::ScalarType dtype) {
    const c10::NoGradGuard no_grad;
    const auto model = filled(dtype);
    model->eval();
    check_logits("eval_logits", "evaluation", dtype, model->forward(images(dtype)).scores);
  }

  // Both precisions are compared with the recorded float64, from which another implementation's float32 is known to
  // differ.
  void check_logits(const std::string& key, const char* mode, at::ScalarType dtype, const at::Tensor& scores) {
    const bool is_double = dtype == at::kDouble;
    WorstError worst;
    worst.add(largest_difference(scores, golden_.at("float64").at(key)), "");
    add(fmt::format("logits, {}, {}", mode, is_double ? "float64" : "float32"), worst,
        is_double ? network_tolerance(dtype) : allowed_deviation(golden_, key + "_max_abs", network_tolerance(dtype)));
  }

  void check_training(at::ScalarType dtype) {
    const auto model = filled(dtype);
    model->train();
    const at::Tensor labels = at::tensor(golden_.at("labels").get<std::vector<int64_t>>()).to(device_);
    const at::Tensor scores = model->forward(images(dtype)).scores;
    check_logits("train_logits", "training", dtype, scores);
    at::cross_entropy_loss(scores, labels).backward();
    if (dtype == at::kDouble) {
      check_gradients(*model);
      check_buffers(*model);
    } else {
      check_rounded_gradients(*model);
    }
  }

  // The worst of the recorded gradients, in order, each found by its parameter's name.
  template <class ErrorOf>
  WorstError over_gradients(const Model& model, const ErrorOf& error_of) {
    const json& recorded = golden_.at("float64").at("gradients");
    const auto parameters = model.named_parameters();
    WorstError worst;
    if (parameters.size() != recorded.size()) {
      worst.add(INFINITY, fmt::format("{} recorded, {} parameters", recorded.size(), parameters.size()));
    }
    for (size_t k = 0; k < recorded.size(); ++k) {
      const auto name = recorded[k].at("name").get<std::string>();
      const at::Tensor* parameter = parameters.find(name);
      const bool has_gradient = parameter && parameter->grad().defined();
      worst.add(has_gradient ? error_of(parameter->grad(), recorded[k], k) : INFINITY, name);
    }
    return worst;
  }

  void check_gradients(const Model& model) {
    const auto error_of = [](const at::Tensor& gradient, const json& recorded, size_t k) {
      return digest_difference(gradient, recorded, kFirstGradientStream + static_cast<uint32_t>(k)) /
             std::max(1.0, recorded.at("l2").get<double>());
    };
    add("gradients, float64", over_gradients(model, error_of), network_tolerance(at::kDouble));
  }

  // Loosely: where a ReLU's input has another sign than in float64, a path is switched on or off. A bias before a batch
  // norm has no gradient but rounding errors.
  void check_rounded_gradients(const Model& model) {
    constexpr double kZero = 1e-9;
    const auto error_of = [](const at::Tensor& gradient, const json& recorded, size_t) {
      const auto norm = recorded.at("l2").get<double>();
      return norm > kZero ? norm_difference(gradient, recorded) / norm : 0.0;
    };
    add("norms of gradients, float32", over_gradients(model, error_of),
        allowed_deviation(golden_, "gradient_l2_max_rel", kLooseGradientTolerance));
  }

  void check_buffers(const Model& model) {
    const json& recorded = golden_.at("float64").at("buffers_after_train");
    const auto buffers = model.named_buffers();
    WorstError worst;
    size_t statistics = 0;
    for (const auto& buffer : buffers) {
      if (!buffer.key().ends_with("num_batches_tracked")) {
        ++statistics;
      } else if (buffer.value().item<double>() != 1) {
        worst.add(INFINITY, buffer.key());
      }
    }
    if (statistics != recorded.size()) {
      worst.add(INFINITY, fmt::format("{} recorded, {} in the model", recorded.size(), statistics));
    }
    for (const json& expected : recorded) {
      const auto name = expected.at("name").get<std::string>();
      const at::Tensor* buffer = buffers.find(name);
      worst.add(buffer ? digest_difference(*buffer, expected) : INFINITY, name);
    }
    add("batch-norm buffers, float64", worst, network_tolerance(at::kDouble));
  }

  const ModelRegistry& registry_;
  at::Device device_;
  const fs::path& file_;
  const json& golden_;
  GoldenModel model_;
  std::vector<int64_t> shape_;
  uint32_t salt_;
  std::vector<CheckRow> rows_;
};

std::vector<CheckRow> check_file(const ModelRegistry& registry, at::Device device, const fs::path& file) {
  if (file.extension() == ".txt") {
    const GoldenModel listed = listed_model(file);
    return {check_parameter_list(file, listed.name, *build(registry, listed))};
  }
  const json golden = read_json(file);
  return ModelCheck(registry, device, file, golden).run();
}

}  // namespace

std::vector<CheckRow> check_models(const ModelRegistry& registry, at::Device device,
                                   const std::vector<fs::path>& files) {
  forbid_tf32();
  std::vector<CheckRow> rows;
  for (const auto& file : files) {
    try {
      const std::vector<CheckRow> found = check_file(registry, device, file);
      rows.insert(rows.end(), found.begin(), found.end());
    } catch (const DataError&) {
      throw;  // it names the file
    } catch (const c10::Error& problem) {
      throw DataError(file.string() + ": " + problem.what_without_backtrace());
    } catch (const std::exception& problem) {
      throw DataError(file.string() + ": " + problem.what());
    }
  }
  return rows;
}

}  // namespace settrain
