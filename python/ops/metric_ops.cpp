// The metrics as operators: torch.ops.settrain.label_ranks, average_k_thresholds, accuracies and so on.
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <torch/library.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "metrics/average_k_threshold.h"
#include "metrics/entries.h"
#include "metrics/label_rank.h"
#include "metrics/label_sets.h"
#include "metrics/sets/temperature.h"
#include "metrics/split_scores.h"
#include "python/ops/value_errors.h"
#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

Ties ties_of(bool strict) {
  return strict ? Ties::kStrict : Ties::kKeepAll;
}

void check_above_zero(const std::string& name, double k) {
  if (!(k > 0)) throw ShapeError(name + ": must be above 0, got " + std::to_string(k));
}

at::Tensor ranks_op(const at::Tensor& scores, const at::Tensor& labels) {
  return with_value_errors([&] {
    check_split({scores, labels});
    return label_ranks(scores, labels);
  });
}

at::Tensor ranks_meta(const at::Tensor& scores, const at::Tensor& labels) {
  return at::empty_symint({scores.sym_size(0)}, labels.options());
}

std::vector<double> thresholds_op(const at::Tensor& values, at::ArrayRef<double> ks, bool strict) {
  return with_value_errors([&] {
    check_scores("values", values);
    for (const double k : ks) {
      check_above_zero("ks", k);
    }
    return average_k_thresholds(values, ks, ties_of(strict));
  });
}

at::Tensor returned_op(const at::Tensor& values, double threshold, bool strict) {
  return returned_classes(values, threshold, ties_of(strict));
}

AverageKOptions average_k_options(at::ArrayRef<double> ks, const std::string& score, bool strict) {
  for (const double k : ks) check_above_zero("average_k", k);
  return {.average_k = ks.vec(),
          .average_k_score = config::value_named(average_k_scores(), score),
          .average_k_ties = ties_of(strict),
          .threshold_from = "same"};
}

/// Throws ShapeError unless they fit the scores. Returns null where there are none.
const at::Tensor* threshold_scores_for(const at::Tensor& scores, const std::optional<at::Tensor>& threshold_scores) {
  if (!threshold_scores) return nullptr;
  check_scores("threshold_scores", *threshold_scores);
  check_shape("threshold_scores", threshold_scores->sizes(), {kAnySize, scores.size(1)});
  return &*threshold_scores;
}

/// The names and values of top-K and average-K accuracies; those of shot groups only with `train_counts`.
std::tuple<std::vector<std::string>, std::vector<double>> accuracies_op(
    const at::Tensor& scores, const at::Tensor& labels, at::IntArrayRef top_k, at::ArrayRef<double> average_k,
    const std::string& average_k_score, bool strict, const std::optional<at::Tensor>& threshold_scores,
    at::IntArrayRef train_counts) {
  return with_value_errors([&] {
    const SplitScores split{scores, labels};
    check_split(split);
    for (const int64_t k : top_k) check_above_zero("top_k", static_cast<double>(k));
    const auto classes = static_cast<size_t>(scores.size(1));
    const bool has_groups = !train_counts.empty();
    MetricContext context{.train_counts = has_groups ? train_counts.vec() : std::vector<int64_t>(classes)};
    if (context.train_counts.size() != classes) {
      throw ShapeError("train_counts: expected " + std::to_string(classes) + ", one a class, got " +
                       std::to_string(train_counts.size()));
    }
    context.threshold_scores = threshold_scores_for(scores, threshold_scores);
    std::vector<std::string> names;
    std::vector<double> values;
    const auto add = [&](const Metric& metric) {
      for (const MetricValue& value : metric.compute(split, context).values) {
        const std::string& name = value.name;
        const bool of_group = name.starts_with("few_") || name.starts_with("medium_") || name.starts_with("many_");
        if (of_group && !has_groups) continue;
        names.push_back(name);
        values.push_back(value.value);
      }
    };
    add(*make_topk_accuracy({.top_k = top_k.vec()}));
    add(*make_average_k(average_k_options(average_k, average_k_score, strict)));
    return std::tuple(std::move(names), std::move(values));
  });
}

/// The names and values of label_set_accuracies().
std::tuple<std::vector<std::string>, std::vector<double>> label_sets_op(
    const at::Tensor& scores, const at::Tensor& label_sets, at::IntArrayRef top_k, at::ArrayRef<double> average_k,
    const std::string& average_k_score, bool strict, const std::optional<at::Tensor>& threshold_scores) {
  return with_value_errors([&] {
    for (const int64_t k : top_k) check_above_zero("top_k", static_cast<double>(k));
    check_score_layout("scores", scores);
    MetricContext context;
    context.threshold_scores = threshold_scores_for(scores, threshold_scores);
    std::vector<std::string> names;
    std::vector<double> values;
    for (const MetricValue& value : label_set_accuracies(
             scores, label_sets, top_k.vec(), average_k_options(average_k, average_k_score, strict), context)) {
      names.push_back(value.name);
      values.push_back(value.value);
    }
    return std::tuple(std::move(names), std::move(values));
  });
}

double temperature_op(const at::Tensor& scores, const at::Tensor& labels) {
  return with_value_errors([&] {
    check_split({scores, labels});
    const TemperatureFit fit = fit_temperature(scores, labels);
    if (!fit.refused.empty()) throw RunError("no temperature can be fitted: " + fit.refused);
    return fit.temperature;
  });
}

double calibration_error_op(const at::Tensor& scores, const at::Tensor& labels, int64_t bins) {
  return with_value_errors([&] {
    check_split({scores, labels});
    if (bins < 1) throw ShapeError("bins: must be at least 1, got " + std::to_string(bins));
    return expected_calibration_error(scores, labels, bins);
  });
}

TORCH_LIBRARY_FRAGMENT(settrain, library) {
  library.def("label_ranks(Tensor scores, Tensor labels) -> Tensor");
  library.def("average_k_thresholds(Tensor values, float[] ks, bool strict) -> float[]");
  library.def("returned_classes(Tensor values, float threshold, bool strict) -> Tensor", returned_op);
  library.def(
      "accuracies(Tensor scores, Tensor labels, int[] top_k, float[] average_k, str average_k_score, bool strict, Tensor? "
      "threshold_scores, int[] train_counts) -> (str[], float[])");
  library.def(
      "label_set_accuracies(Tensor scores, Tensor label_sets, int[] top_k, float[] average_k, str average_k_score, bool "
      "strict, Tensor? threshold_scores) -> (str[], float[])");
  library.def("fit_temperature(Tensor scores, Tensor labels) -> float");
  library.def("expected_calibration_error(Tensor scores, Tensor labels, int bins) -> float");
}

void implement(torch::Library& library) {
  library.impl("label_ranks", ranks_op);
  library.impl("average_k_thresholds", thresholds_op);
  library.impl("accuracies", accuracies_op);
  library.impl("label_set_accuracies", label_sets_op);
  library.impl("fit_temperature", temperature_op);
  library.impl("expected_calibration_error", calibration_error_op);
}

TORCH_LIBRARY_IMPL(settrain, CPU, library) {
  implement(library);
}

TORCH_LIBRARY_IMPL(settrain, CUDA, library) {
  implement(library);
}

TORCH_LIBRARY_IMPL(settrain, Meta, library) {
  library.impl("label_ranks", ranks_meta);
}

}  // namespace
}  // namespace settrain
