#include "metrics/average_k.h"

#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "metrics/class_hits.h"
#include "metrics/shot_group.h"
#include "metrics/size_counts.h"
#include "metrics/threshold.h"

namespace settrain {
namespace {

double mean_set_size(const SetSizeHistogram& histogram) {
  int64_t samples = 0, returned = 0;
  for (size_t size = 0; size < histogram.counts.size(); ++size) {
    samples += histogram.counts[size];
    returned += histogram.counts[size] * static_cast<int64_t>(size);
  }
  return static_cast<double>(returned) / static_cast<double>(samples);
}

constexpr double kSmallestFloat = std::numeric_limits<float>::min();
constexpr double kFloatRounding = 4 * std::numeric_limits<float>::epsilon();

/// The sets of one K.
struct Sets {
  double lambda;
  at::Tensor sizes;           // [samples] int64
  at::Tensor label_returned;  // [samples] bool
};

std::vector<Sets> sets_of(const AverageKValues& decided, const at::Tensor& labels) {
  const auto& [values, lambdas, ties] = decided;
  const at::Tensor sizes = set_sizes(values, lambdas, ties);
  const at::Tensor label_values = values.gather(1, labels.unsqueeze(1)).squeeze(1);
  std::vector<Sets> sets;
  for (size_t i = 0; i < lambdas.size(); ++i) {
    sets.push_back(
        {lambdas[i], sizes.select(0, static_cast<int64_t>(i)), returned_classes(label_values, lambdas[i], ties)});
  }
  return sets;
}

/// The shot groups that hold samples: what their names begin with, and [samples] bool, which samples they are.
std::vector<std::pair<std::string, at::Tensor>> shot_group_samples(const at::Tensor& labels,
                                                                   const std::vector<int64_t>& train_counts) {
  std::vector<int64_t> groups;
  for (const int64_t count : train_counts) groups.push_back(static_cast<int64_t>(shot_group(count)));
  const at::Tensor group = at::tensor(groups, at::kLong).to(labels.device()).index_select(0, labels);
  std::vector<std::pair<std::string, at::Tensor>> samples;
  for (const auto& [prefix, wanted] :
       {std::pair("few_", ShotGroup::kFew), {"medium_", ShotGroup::kMedium}, {"many_", ShotGroup::kMany}}) {
    at::Tensor is_in = group.eq(static_cast<int64_t>(wanted));
    if (is_in.any().item<bool>()) samples.emplace_back(prefix, std::move(is_in));
  }
  return samples;
}

}  // namespace

std::string average_k_name(double k) {
  return fmt::format("avg{}", k);
}

bool is_of_all_samples(const std::string& set_sizes) {
  return set_sizes.starts_with("avg");
}

config::Keys AverageKOptions::keys() {
  return {
      config::key("average_k", &AverageKOptions::average_k, {2, 5},
                  "The K of the average-K accuracies, whole or not: avg5, avg5_size (realised mean size of the sets), "
                  "avg5_lambda, macro_avg5 (mean over classes), few_avg5, medium_avg5 and many_avg5.")
          .above(0)
          .distinct()
          .in("classes"),
      config::key(
          "average_k_score", &AverageKOptions::average_k_score, "softmax",
          "What is compared with the threshold: softmax (Garcin 2023, Algorithm 1), sigmoid, or the raw scores. "
          "The scale of a loss with normalised scores multiplies them before softmax and sigmoid.")
          .one_of({"softmax", "sigmoid", "raw"}),
      config::key(
          "average_k_ties", &AverageKOptions::average_k_ties, "keep_all",
          "Values equal to the threshold: keep_all returns them (Garcin 2023, Algorithm 1), and sets may get larger "
          "than K on average; strict does not (the constraint of eq. 3.5).")
          .one_of({"keep_all", "strict"}),
      config::key("threshold_from", &AverageKOptions::threshold_from, "val",
                  "The images that set average-K's thresholds: val, same (the split that is evaluated), or a folder of "
                  "images, which need no labels.")
          .not_empty()};
}

std::vector<std::string> AverageK::names() const {
  std::vector<std::string> names;
  for (const double k : options_.average_k) {
    const std::string sets = average_k_name(k);
    for (std::string& name : accuracy_names(sets, bins_)) names.push_back(std::move(name));
    names.push_back(sets + "_size");
    names.push_back(sets + "_lambda");
  }
  return names;
}

AverageKValues average_k_values(const AverageKOptions& options, const SplitScores& split,
                                const MetricContext& context) {
  const bool is_raw = options.average_k_score == "raw";
  const auto decided = [&](at::ScalarType dtype) {
    const auto values_of = [&](const at::Tensor& scores) {
      if (is_raw) return scores;
      const at::Tensor logits = (context.score_scale == 1.0 ? scores : scores.mul(context.score_scale)).to(dtype);
      return options.average_k_score == "softmax" ? at::softmax(logits, 1) : at::sigmoid(logits);
    };
    AverageKValues result{values_of(split.scores), {}, Ties::kKeepAll};
    if (options.average_k_ties == "strict") result.ties = Ties::kStrict;
    result.lambdas =
        average_k_thresholds(context.threshold_scores ? values_of(*context.threshold_scores) : result.values,
                             options.average_k, result.ties);
    return result;
  };
  AverageKValues result = decided(split.scores.scalar_type());
  // Where a network is so sure that a threshold lies at 0 or 1, float32's probabilities tie. Float64 takes several
  // times the memory and the time.
  const bool ties = std::any_of(result.lambdas.begin(), result.lambdas.end(), [](double lambda) {
    return (lambda >= 0 && lambda < kSmallestFloat) || (lambda > 1 - kFloatRounding && std::isfinite(lambda));
  });
  if (ties && !is_raw && split.scores.scalar_type() == at::kFloat) result = decided(at::kDouble);
  return result;
}

ResultsOfSamples AverageK::prepare(const SplitScores& split, const MetricContext& context) const {
  if (options_.average_k.empty()) return [](const at::Tensor&) { return EvaluationResult(); };
  AverageKValues decided = average_k_values(options_, split, context);
  std::vector<Sets> split_sets = sets_of(decided, split.labels);
  const bool own_thresholds = context.threshold_scores == nullptr;
  const int64_t classes = split.scores.size(1);
  if (!own_thresholds) decided.values.reset();

  return [=, this, split_labels = split.labels, train_counts = context.train_counts](const at::Tensor& samples) {
    const at::Tensor labels = of_samples(split_labels, samples);
    std::vector<Sets> sets = split_sets;
    if (samples.defined() && own_thresholds) {
      AverageKValues chosen{of_samples(decided.values, samples), {}, decided.ties};
      chosen.lambdas = average_k_thresholds(chosen.values, options_.average_k, chosen.ties);
      sets = sets_of(chosen, labels);
    } else {
      for (Sets& k_sets : sets) {
        k_sets.sizes = of_samples(k_sets.sizes, samples);
        k_sets.label_returned = of_samples(k_sets.label_returned, samples);
      }
    }
    const auto groups = shot_group_samples(labels, train_counts);
    EvaluationResult result;
    for (size_t i = 0; i < sets.size(); ++i) {
      const auto& [lambda, sizes, label_returned] = sets[i];
      const std::string name = average_k_name(options_.average_k[i]);
      const ClassHits counts = count_hits(label_returned, labels, classes);
      for (MetricValue& value : accuracies(name, counts, train_counts, bins_))
        result.values.push_back(std::move(value));
      result.set_sizes.push_back({name, size_counts(sizes, classes)});
      result.values.push_back({name + "_size", mean_set_size(result.set_sizes.back())});
      result.values.push_back({name + "_lambda", lambda});
      for (const auto& [prefix, is_in] : groups)
        result.set_sizes.push_back({prefix + name, size_counts(sizes.masked_select(is_in), classes)});
    }
    return result;
  };
}

}  // namespace settrain
