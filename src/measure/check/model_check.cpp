#include "src/measure/check/model_check.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/model.h"
#include "models/named_tensors.h"
#include "src/core/error.h"
#include "src/measure/check/closed_fill.h"
#include "src/measure/check/golden_model.h"
#include "src/measure/check/initial_weights.h"
#include "src/measure/check/json_place.h"
#include "src/measure/check/parameter_list.h"
#include "src/measure/check/tolerance.h"
#include "src/train/compute_policy.h"

namespace settrain {
namespace {

using nlohmann::json;

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

// What a file says of a tensor too large to be recorded whole: norm, first elements, and one product over all of them.
struct DigestDifference {
  double l2, first8, dot;

  double worst() const { return worse(worse(l2, first8), dot); }
};

DigestDifference digest_difference(const at::Tensor& tensor, const json& expected, uint32_t stream) {
  const at::Tensor flat = tensor.detach().to(at::kCPU, at::kDouble).contiguous().flatten();
  DigestDifference difference{std::abs(flat.norm().item<double>() - expected.at("l2").get<double>()),
                              largest_difference(flat.slice(0, 0, 8), expected.at("first8")), 0};
  if (expected.contains("dot")) {
    const double dot = flat.dot(closed_noise(stream, flat.numel())).item<double>();
    difference.dot = std::abs(dot - expected.at("dot").get<double>());
  }
  return difference;
}

// How far float32 may be from float64: a few times what the file records (the larger with oneDNN's convolutions and
// without), since the order of sums depends on the processor. PyTorch itself, which made the files, was up to 1.7 times
// as far on another machine, with AVX2.
double allowed_deviation(const json& golden, const std::string& what, double otherwise) {
  constexpr double kOtherProcessors = 3;
  double deviation = 0;
  for (const char* how : {"deviation_float32_from_float64", "deviation_float32_without_mkldnn_from_float64"}) {
    if (golden.contains(how)) deviation = std::max(deviation, golden.at(how).at(what).get<double>());
  }
  return deviation > 0 ? kOtherProcessors * deviation : otherwise;
}

// Collects the rows of one file.
class ModelCheck {
 public:
  ModelCheck(const ModelRegistry& registry, at::Device device, const std::filesystem::path& file, const json& golden)
      : registry_(registry),
        device_(device),
        file_(file),
        golden_(golden),
        what_(golden_model(golden)),
        shape_(golden.at("input_shape").get<std::vector<int64_t>>()) {
    salt_ = golden.value("salt", 0U);
  }

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

  void add(const std::string& what, double error, double tolerance, const std::string& note = "") {
    rows_.push_back({what_.name, what, error, tolerance, error <= tolerance, error <= tolerance ? "" : note});
  }

  std::shared_ptr<Model> initial() const { return build(registry_, what_); }

  std::shared_ptr<Model> filled(at::ScalarType dtype) const {
    auto model = initial();
    closed_fill(state_dict(*model), salt_);
    model->to(device_, dtype);
    return model;
  }

  at::Tensor images(at::ScalarType dtype) const { return closed_input(shape_, salt_).to(device_, dtype); }

  std::filesystem::path beside(const char* ending) const {
    return file_.parent_path() / (file_.stem().string() + ending);
  }

  void check_entries() {
    constexpr uint64_t kSeed = 4;
    at::manual_seed(kSeed);
    auto model = initial();
    if (exists(beside(".params.txt"))) {
      rows_.push_back(check_parameter_list(beside(".params.txt"), what_.name, *model));
    }
    if (exists(beside(".init.json"))) {
      rows_.push_back(check_initial_weights(beside(".init.json"), what_.name, *model));
    }
    const int64_t expected = golden_.at("parameters").get<int64_t>(), got = model->num_parameters();
    add("number of parameters", static_cast<double>(std::abs(got - expected)), 0, std::to_string(got));
    add("filled weights",
        closed_fill(state_dict(*model), salt_) == golden_.at("fill_sha256").get<std::string>() ? 0 : 1, 0);
  }

  void check_eval(at::ScalarType dtype) {
    c10::NoGradGuard no_grad;
    auto model = filled(dtype);
    model->eval();
    add_logits("eval_logits", dtype, model->forward(images(dtype)).scores);
  }

  // Both precisions against float64: of float32, it is known how far from it another implementation is.
  void add_logits(const std::string& what, at::ScalarType dtype, const at::Tensor& scores) {
    const json& expected = golden_.at("float64").at(what);
    const double error = largest_difference(scores, expected);
    add(std::string("logits, ") + (what == "eval_logits" ? "evaluation" : "training") + dtype_name(dtype), error,
        dtype == at::kDouble ? network_tolerance(dtype)
                             : allowed_deviation(golden_, what + "_max_abs", network_tolerance(dtype)));
  }

  static const char* dtype_name(at::ScalarType dtype) { return dtype == at::kDouble ? ", float64" : ", float32"; }

  void check_training(at::ScalarType dtype) {
    auto model = filled(dtype);
    model->train();
    const at::Tensor labels = at::tensor(golden_.at("labels").get<std::vector<int64_t>>()).to(device_);
    const at::Tensor scores = model->forward(images(dtype)).scores;
    add_logits("train_logits", dtype, scores);
    at::cross_entropy_loss(scores, labels).backward();
    if (dtype == at::kDouble) {
      check_gradients(*model);
      check_buffers(*model);
    } else {
      check_rounded_gradients(*model);
    }
  }

  // The recorded gradients by parameter name, in order. `what` fails where there are not as many as parameters.
  template <class Visit>
  double over_gradients(const Model& model, std::string& note, const Visit& error_of) {
    const json& recorded = golden_.at("float64").at("gradients");
    const auto parameters = model.named_parameters();
    double worst = parameters.size() == recorded.size() ? 0 : INFINITY;
    if (worst > 0) note = fmt::format("{} recorded, {} parameters", recorded.size(), parameters.size());
    for (size_t k = 0; k < recorded.size(); ++k) {
      const auto name = recorded[k].at("name").get<std::string>();
      const at::Tensor* parameter = parameters.find(name);
      const bool has_gradient = parameter && parameter->grad().defined();
      const double error = has_gradient ? error_of(parameter->grad(), recorded[k], k) : INFINITY;
      if (worse(worst, error) > worst) note = name;
      worst = worse(worst, error);
    }
    return worst;
  }

  void check_gradients(const Model& model) {
    std::string note;
    const double worst = over_gradients(model, note, [](const at::Tensor& gradient, const json& recorded, size_t k) {
      const DigestDifference difference =
          digest_difference(gradient, recorded, kFirstGradientStream + static_cast<uint32_t>(k));
      return difference.worst() / std::max(1.0, recorded.at("l2").get<double>());
    });
    add("gradients, float64", worst, network_tolerance(at::kDouble), note);
  }

  // Loosely: where a ReLU's input has another sign than in float64, a path is switched on or off.
  void check_rounded_gradients(const Model& model) {
    std::string note;
    const double worst = over_gradients(model, note, [](const at::Tensor& gradient, const json& recorded, size_t) {
      return digest_difference(gradient, recorded, 0).l2 / recorded.at("l2").get<double>();
    });
    add("norms of gradients, float32", worst,
        allowed_deviation(golden_, "gradient_l2_max_rel", kLooseGradientTolerance), note);
  }

  void check_buffers(const Model& model) {
    const json& recorded = golden_.at("float64").at("buffers_after_train");
    const auto buffers = model.named_buffers();
    double worst = 0;
    std::string note;
    size_t statistics = 0;
    for (const auto& buffer : buffers) {
      if (!buffer.key().ends_with("num_batches_tracked")) {
        ++statistics;
      } else if (buffer.value().item<double>() != 1) {
        worst = INFINITY;
        note = buffer.key();
      }
    }
    if (statistics != recorded.size()) {
      worst = INFINITY;
      note = fmt::format("{} recorded, {} in the model", recorded.size(), statistics);
    }
    for (const json& expected : recorded) {
      const auto name = expected.at("name").get<std::string>();
      const at::Tensor* buffer = buffers.find(name);
      const double error = buffer ? digest_difference(*buffer, expected, 0).worst() : INFINITY;
      if (worse(worst, error) > worst) note = name;
      worst = worse(worst, error);
    }
    add("batch-norm buffers, float64", worst, network_tolerance(at::kDouble), note);
  }

  const ModelRegistry& registry_;
  at::Device device_;
  const std::filesystem::path& file_;
  const json& golden_;
  GoldenModel what_;
  std::vector<int64_t> shape_;
  uint32_t salt_ = 0;
  std::vector<CheckRow> rows_;
};

std::vector<CheckRow> check_file(const ModelRegistry& registry, at::Device device, const std::filesystem::path& file) {
  if (file.extension() == ".txt") {
    const GoldenModel listed = listed_model(file);
    return {check_parameter_list(file, listed.name, *build(registry, listed))};
  }
  const json golden = read_json(file);
  return ModelCheck(registry, device, file, golden).run();
}

}  // namespace

std::vector<CheckRow> check_models(const ModelRegistry& registry, at::Device device,
                                   const std::vector<std::filesystem::path>& files) {
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
