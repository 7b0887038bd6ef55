#include "src/measure/check/loss_golden.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <limits>

#include "src/measure/check/json_place.h"

namespace settrain {
namespace {

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

// Recorded from code that disagrees with the paper's formula.
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
    // What that code adds inside its logarithms, which the formula has not.
    if (key == "log_epsilon" && is_imitation(place)) continue;
    golden.overrides.push_back("loss." + key + "=" + place["params"][key].dump());
  }
  read_inputs(place, golden);
  read_expected(place, golden);
  return golden;
}

}  // namespace

LossGolden read_loss_golden(const std::filesystem::path& file) {
  const nlohmann::json json = read_json(file);
  const JsonPlace root(json, file);
  LossGolden golden{root["loss"].text(), {}};
  for (const JsonPlace& place : root["cases"].elements()) golden.cases.push_back(read_loss_case(place));
  return golden;
}

}  // namespace settrain
