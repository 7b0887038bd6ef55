#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "losses/make_loss.h"
#include "losses/ops/loss_input.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "src/measure/check/checks.h"
#include "src/measure/check/json_place.h"
#include "src/measure/check/tolerance.h"

namespace settrain {
namespace {

// One case: inputs and the values to expect. Tensors are float64 and on the CPU.
struct LossGoldenCase {
  std::string name;
  std::vector<std::string> overrides;  // the loss's parameters: "loss.k=5"
  std::vector<int64_t> class_counts;   // [classes], or empty
  at::Tensor scores;                   // [batch, classes]
  at::Tensor scores_multi;             // scores of a second head; undefined where there is none
  at::Tensor labels;                   // [batch] int64; the first of each set
  LabelSets label_sets;                // undefined where samples have one label each
  at::Tensor estimate_logits;          // [batch, classes]; undefined where the loss estimates no labels
  std::optional<at::Tensor> noise;     // [batch, draws, classes]
  at::Tensor per_sample;               // [batch]
  at::Tensor loss;                     // [] their mean
  at::Tensor gradient;                 // [batch, classes] of the mean; undefined where the formula has none
  at::Tensor gradient_multi;           // the same for scores_multi
  at::Tensor gradient_estimates;       // the same for estimate_logits
  bool is_batch_level = false;         // the samples are coupled: per_sample is one way of sharing out the loss
};

void read_reals(const JsonPlace& place, at::IntArrayRef shape, double*& out) {
  if (shape.empty()) {
    *out++ = place.real();
    return;
  }
  for (const JsonPlace& element : place.elements(shape[0])) read_reals(element, shape.slice(1), out);
}

at::Tensor read_tensor(const JsonPlace& place, at::IntArrayRef shape) {
  at::Tensor tensor = at::empty(shape, at::kDouble);
  double* out = tensor.mutable_data_ptr<double>();
  read_reals(place, shape, out);
  return tensor;
}

int64_t length_of(const JsonPlace& list) {
  const auto length = static_cast<int64_t>(list.elements().size());
  if (length == 0) list.fail("at least one element");
  return length;
}

void read_label_sets(const JsonPlace& place, int64_t batch, int64_t classes, LossGoldenCase& golden) {
  std::vector<int64_t> labels, offsets{0}, sets;
  for (const JsonPlace& set : place.elements(batch)) {
    length_of(set);
    for (const JsonPlace& element : set.elements()) sets.push_back(element.integer(0, classes - 1));
    labels.push_back(sets[static_cast<size_t>(offsets.back())]);
    offsets.push_back(static_cast<int64_t>(sets.size()));
  }
  golden.labels = at::tensor(labels, at::kLong);
  golden.label_sets = {at::tensor(offsets, at::kLong), at::tensor(sets, at::kLong)};
}

void read_inputs(const JsonPlace& place, LossGoldenCase& golden) {
  const bool two_heads = place.has("scores_multi");
  const JsonPlace scores = place[two_heads ? "scores_single" : "scores"];
  const int64_t batch = length_of(scores);
  const int64_t classes = length_of(scores.elements()[0]);
  golden.scores = read_tensor(scores, {batch, classes});
  if (two_heads) golden.scores_multi = read_tensor(place["scores_multi"], {batch, classes});
  if (place.has("label_sets")) {
    read_label_sets(place["label_sets"], batch, classes, golden);
  } else {
    golden.labels = at::empty({batch}, at::kLong);
    int64_t* label = golden.labels.mutable_data_ptr<int64_t>();
    for (const JsonPlace& element : place["labels"].elements(batch)) *label++ = element.integer(0, classes - 1);
  }
  if (place.has("estimate_logits")) golden.estimate_logits = read_tensor(place["estimate_logits"], {batch, classes});
  if (place.has("class_counts")) {
    for (const JsonPlace& element : place["class_counts"].elements(classes)) {
      golden.class_counts.push_back(element.integer(0, std::numeric_limits<int64_t>::max()));
    }
  }
  if (place.has("noise")) {
    const int64_t draws = length_of(place["noise"].elements(batch)[0]);
    golden.noise = read_tensor(place["noise"], {batch, draws, classes});
  }
}

// Whether the case was recorded from code that disagrees with the paper's formula.
bool is_imitation(const JsonPlace& place) {
  return place.has("agrees_with_formula") && !place["agrees_with_formula"].boolean();
}

void read_expected(const JsonPlace& place, LossGoldenCase& golden) {
  const JsonPlace values = is_imitation(place) ? place["formula"] : place;
  golden.per_sample = read_tensor(values["per_sample"], {golden.scores.size(0)});
  golden.loss = read_tensor(values["loss"], {});
  golden.is_batch_level = place.has("batch_level") && place["batch_level"].boolean();
  const JsonPlace gradient = values[golden.scores_multi.defined() ? "grad_single" : "grad_scores"];
  if (gradient.is_null()) return;
  golden.gradient = read_tensor(gradient, golden.scores.sizes());
  if (golden.scores_multi.defined()) golden.gradient_multi = read_tensor(values["grad_multi"], golden.scores.sizes());
  if (golden.estimate_logits.defined()) {
    golden.gradient_estimates = read_tensor(values["grad_estimate_logits"], golden.scores.sizes());
  }
}

LossGoldenCase read_loss_case(const JsonPlace& place) {
  LossGoldenCase golden;
  golden.name = place["name"].text();
  for (const std::string& key : place["params"].keys()) {
    // That code adds it inside its logarithms; the formula does not have it.
    if (key == "log_epsilon" && is_imitation(place)) continue;
    golden.overrides.push_back("loss." + key + "=" + place["params"][key].dump());
  }
  read_inputs(place, golden);
  read_expected(place, golden);
  return golden;
}

// The values and gradients of a loss: float64, on the CPU.
struct Answer {
  at::Tensor per_sample, mean, gradient, gradient_multi, gradient_estimates;  // undefined: not to be compared
};

// Feeds `golden` with its scores and noise cast to `dtype`.
Answer answer(Loss& loss, const LossGoldenCase& golden, at::Device device, at::ScalarType dtype) {
  const auto leaf = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.to(device, dtype).detach().clone().requires_grad_() : tensor;
  };
  LossInput input;
  input.output.scores = leaf(golden.scores);
  input.output.scores_multi = leaf(golden.scores_multi);
  input.labels = golden.labels.to(device);
  if (golden.label_sets.defined()) {
    input.label_sets = {golden.label_sets.offsets.to(device), golden.label_sets.classes.to(device)};
  }
  if (golden.estimate_logits.defined()) input.estimate_logits = leaf(golden.estimate_logits);
  if (golden.noise) input.noise = golden.noise->to(device, dtype);
  const LossValue value = loss(input);
  const at::Tensor mean = value.mean();
  mean.backward();
  const auto result = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.detach().to(at::kCPU, at::kDouble) : at::Tensor();
  };
  const auto gradient_of = [&](const at::Tensor& leaf) { return leaf.defined() ? result(leaf.grad()) : leaf; };
  return {result(value.per_sample), result(mean), gradient_of(input.output.scores),
          gradient_of(input.output.scores_multi), gradient_of(input.estimate_logits.value_or(at::Tensor()))};
}

// Largest |got - expected| / max(size, |expected|); infinite where a value is NaN.
double relative_error(const at::Tensor& got, const at::Tensor& expected, double size) {
  const at::Tensor error = got.sub(expected).abs().div(expected.abs().clamp_min(size));
  const double largest = error.max().item<double>();
  return std::isnan(largest) ? std::numeric_limits<double>::infinity() : largest;
}

// The size of the numbers that an answer is made from: rounding errors are in proportion to it.
struct Sizes {
  double losses = 1, gradient = 1;
};

double largest_error(const Answer& got, const Answer& expected, const Sizes& sizes) {
  double error = relative_error(got.mean, expected.mean, sizes.losses);
  const auto compare = [&error](const at::Tensor& a, const at::Tensor& b, double size) {
    if (b.defined()) error = std::max(error, relative_error(a, b, size));
  };
  compare(got.per_sample, expected.per_sample, sizes.losses);
  compare(got.gradient, expected.gradient, sizes.gradient);
  compare(got.gradient_multi, expected.gradient_multi, sizes.gradient);
  compare(got.gradient_estimates, expected.gradient_estimates, sizes.gradient);
  return error;
}

CheckRow row(const std::string& name, const std::string& what, double error, double tolerance,
             const std::string& note) {
  return {name, what, error, tolerance, error <= tolerance, note};
}

LossGoldenCase rounded_to_float32(LossGoldenCase golden) {
  for (at::Tensor* input : {&golden.scores, &golden.scores_multi, &golden.estimate_logits}) {
    if (input->defined()) *input = input->to(at::kFloat).to(at::kDouble);
  }
  if (golden.noise) golden.noise = golden.noise->to(at::kFloat).to(at::kDouble);
  return golden;
}

void check_case(const LossGoldenCase& golden, const std::string& name, Loss& loss, at::Device device,
                std::vector<CheckRow>& rows) {
  const std::string note = golden.gradient.defined() ? "" : "the formula has no gradient here: values only";
  const double size_of_scores = std::max(1.0, golden.scores.abs().max().item<double>());
  const Answer expected{golden.is_batch_level ? at::Tensor() : golden.per_sample, golden.loss, golden.gradient,
                        golden.gradient_multi, golden.gradient_estimates};
  rows.push_back(row(name, golden.name + ", float64",
                     largest_error(answer(loss, golden, device, at::kDouble), expected, {}),
                     size_of_scores > 1000 ? kLargeScoresTolerance : tolerance(device, at::kDouble), note));

  const LossGoldenCase rounded = rounded_to_float32(golden);
  Answer in_float64 = answer(loss, rounded, device, at::kDouble);
  if (!golden.gradient.defined()) {
    in_float64.gradient = in_float64.gradient_multi = in_float64.gradient_estimates = at::Tensor();
  }
  rows.push_back(row(name, golden.name + ", float32 against float64",
                     largest_error(answer(loss, rounded, device, at::kFloat), in_float64,
                                   {size_of_scores * loss.score_scale(), loss.score_scale()}),
                     tolerance(device, at::kFloat), note));
}

}  // namespace

std::vector<CheckRow> check_losses(const LossRegistry& registry, at::Device device,
                                   const std::vector<std::filesystem::path>& files) {
  std::vector<CheckRow> rows;
  for (const std::filesystem::path& file : files) {
    const nlohmann::json json = read_json(file);
    const JsonPlace root(json, file);
    const std::string name = root["loss"].text();
    std::vector<LossGoldenCase> cases;
    for (const JsonPlace& place : root["cases"].elements()) cases.push_back(read_loss_case(place));
    const std::vector<std::string> names = registry.names();
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      rows.push_back({name, file.filename().string(), 0, 0, false, "this build has no loss of that name"});
      continue;
    }
    for (LossGoldenCase& golden : cases) {
      try {
        golden.overrides.push_back("loss.name=" + name);
        const LossContext context{.num_classes = golden.scores.size(1),
                                  .class_counts = golden.class_counts,
                                  .train_ids = {},
                                  .train_labels = {}};
        const config::Config config = config::load({{loss_section(registry)}, {}}, {}, golden.overrides);
        check_case(golden, name, *make_loss(registry, config, context), device, rows);
      } catch (const Error& error) {
        rows.push_back({name, golden.name, 0, 0, false, error.what()});
      }
    }
  }
  return rows;
}

}  // namespace settrain
