#include "src/check/model_check.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/model.h"
#include "models/model_options.h"
#include "models/named_tensors.h"
#include "src/check/closed_fill.h"
#include "src/check/json_place.h"
#include "src/check/tolerance.h"
#include "src/config/load.h"
#include "src/config/variants.h"
#include "src/core/error.h"

namespace settrain {
namespace {

using nlohmann::json;

std::shared_ptr<Model> build(const ModelRegistry& registry, const json& golden) {
  config::Schema schema;
  schema.sections.push_back(
      {"model", "", ModelOptions::keys(), "name", registry.names().front(), config::variants_of(registry)});
  const config::Config config = config::load(schema, {}, golden.at("settings").get<std::vector<std::string>>());
  const auto shape = golden.at("input_shape").get<std::vector<int64_t>>();
  const ModelContext context{golden.at("num_classes").get<int64_t>(), shape.at(1), shape.at(2), shape.at(3)};
  return registry.at(config.get<std::string>("model.name")).make(config, context);
}

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

// The worst of what a file says of a tensor too large to be recorded whole: norm, first elements, and one product over
// all of them.
double digest_difference(const at::Tensor& tensor, const json& expected, uint32_t stream) {
  const at::Tensor flat = tensor.detach().to(at::kCPU, at::kDouble).contiguous().flatten();
  double worst = std::abs(flat.norm().item<double>() - expected.at("l2").get<double>());
  worst = std::max(worst, largest_difference(flat.slice(0, 0, 8), expected.at("first8")));
  if (expected.contains("dot")) {
    const double dot = flat.dot(closed_noise(stream, flat.numel())).item<double>();
    worst = std::max(worst, std::abs(dot - expected.at("dot").get<double>()));
  }
  return worst;
}

// Collects the rows of one file.
class ModelCheck {
 public:
  ModelCheck(const ModelRegistry& registry, at::Device device, const json& golden)
      : registry_(registry), device_(device), golden_(golden), name_(golden.at("model").get<std::string>()) {}

  std::vector<CheckRow> run() {
    check_entries();
    check_eval(at::kDouble, "float64");
    check_eval(at::kFloat, "float32");
    check_training();
    return rows_;
  }

 private:
  static constexpr uint32_t kFirstGradientStream = 2000;

  void add(const std::string& what, double error, double tolerance, const std::string& note = "") {
    rows_.push_back({name_, what, error, tolerance, error <= tolerance, note});
  }

  std::shared_ptr<Model> filled(at::ScalarType dtype) {
    auto model = build(registry_, golden_);
    closed_fill(state_dict(*model));
    model->to(device_, dtype);
    return model;
  }

  at::Tensor images(at::ScalarType dtype) const {
    return closed_input(golden_.at("input_shape").get<std::vector<int64_t>>()).to(device_, dtype);
  }

  void check_entries() {
    auto model = build(registry_, golden_);
    const NamedTensors tensors = state_dict(*model);
    const json& expected = golden_.at("entries");
    int64_t wrong = std::abs(static_cast<int64_t>(tensors.size()) - static_cast<int64_t>(expected.size()));
    std::string note;
    for (size_t i = 0; i < std::min(tensors.size(), expected.size()); ++i) {
      const bool same = tensors[i].first == expected[i].at("name") &&
                        tensors[i].second.sizes().vec() == expected[i].at("shape").get<std::vector<int64_t>>();
      if (!same && note.empty()) note = "first: " + tensors[i].first;
      wrong += same ? 0 : 1;
    }
    add("names and shapes", static_cast<double>(wrong), 0, note);
    add("filled weights", closed_fill(tensors) == golden_.at("fill_sha256") ? 0 : 1, 0);
  }

  void check_eval(at::ScalarType dtype, const std::string& dtype_name) {
    c10::NoGradGuard no_grad;
    auto model = filled(dtype);
    model->eval();
    add("logits, evaluation, " + dtype_name,
        largest_difference(model->forward(images(dtype)).scores, golden_.at(dtype_name).at("eval_logits")),
        network_tolerance(dtype));
  }

  void check_training() {
    const json& expected = golden_.at("float64");
    auto model = filled(at::kDouble);
    model->train();
    const at::Tensor labels = at::tensor(golden_.at("labels").get<std::vector<int64_t>>()).to(device_);
    const at::Tensor scores = model->forward(images(at::kDouble)).scores;
    add("logits, training, float64", largest_difference(scores, expected.at("train_logits")),
        network_tolerance(at::kDouble));

    at::cross_entropy_loss(scores, labels).backward();
    const auto parameters = model->named_parameters();
    double gradients = parameters.size() == expected.at("gradients").size() ? 0 : INFINITY;
    for (size_t k = 0; k < expected.at("gradients").size(); ++k) {
      const json& gradient = expected.at("gradients")[k];
      const at::Tensor* parameter = parameters.find(gradient.at("name").get<std::string>());
      const uint32_t stream = kFirstGradientStream + static_cast<uint32_t>(k);
      gradients = std::max(gradients, parameter ? digest_difference(parameter->grad(), gradient, stream) : INFINITY);
    }
    add("gradients, float64", gradients, network_tolerance(at::kDouble));

    const auto named_buffers = model->named_buffers();
    double buffers = 0;
    for (const json& buffer : expected.at("buffers_after_train")) {
      const at::Tensor* tensor = named_buffers.find(buffer.at("name").get<std::string>());
      buffers = std::max(buffers, tensor ? digest_difference(*tensor, buffer, 0) : INFINITY);
    }
    add("batch-norm buffers, float64", buffers, network_tolerance(at::kDouble));
  }

  const ModelRegistry& registry_;
  at::Device device_;
  const json& golden_;
  std::string name_;
  std::vector<CheckRow> rows_;
};

}  // namespace

std::vector<CheckRow> check_models(const ModelRegistry& registry, at::Device device,
                                   const std::vector<std::filesystem::path>& files) {
  std::vector<CheckRow> rows;
  for (const auto& file : files) {
    const json golden = read_json(file);
    try {
      for (CheckRow& row : ModelCheck(registry, device, golden).run()) rows.push_back(std::move(row));
    } catch (const json::exception& problem) {
      throw DataError(file.string() + ": " + problem.what());
    }
  }
  return rows;
}

}  // namespace settrain
