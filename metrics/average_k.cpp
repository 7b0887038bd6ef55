// Average-K accuracy: sets may differ in size as long as they hold K classes on average.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "metrics/entries.h"

namespace settrain {
namespace {

constexpr double kSmallestFloat = std::numeric_limits<float>::min();
constexpr double kFloatRounding = 4 * std::numeric_limits<float>::epsilon();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

at::Tensor probabilities_of(const at::Tensor& logits, AverageKScore score) {
  return score == AverageKScore::kSoftmax ? at::softmax(logits, 1) : at::sigmoid(logits);
}

/// log(p) - log(1 - p) for each probability p, in float64. Log-odds differ where probabilities round to 0 or 1. For
/// softmax, this is s_c - log(sum of exp(s_j) over the other classes j).
at::Tensor log_odds_of(const at::Tensor& scaled, AverageKScore score) {
  if (score == AverageKScore::kSigmoid) return scaled.to(at::kDouble);
  constexpr int64_t kRows = 4096;  // at a time, since a row takes memory for eight
  const at::Tensor odds = at::empty(scaled.sizes(), scaled.options().dtype(at::kDouble));
  for (int64_t first = 0; first < scaled.size(0); first += kRows) {
    const int64_t rows = std::min(kRows, scaled.size(0) - first);
    const at::Tensor exact = scaled.narrow(0, first, rows).to(at::kDouble);
    const auto [largest, place] = exact.max(1, /*keepdim=*/true);
    const at::Tensor logits = exact - largest, p = at::softmax(logits, 1);
    const at::Tensor others = logits.scatter(1, place, -std::numeric_limits<double>::infinity());
    const at::Tensor above_half = logits - at::logsumexp(others, {1}, /*keepdim=*/true);  // only the largest is
    odds.narrow(0, first, rows).copy_(at::where(p.gt(0.5), above_half, at::log_softmax(logits, 1) - p.neg().log1p()));
  }
  return odds;
}

/// log(1 / (1 + exp(-x))).
double log_sigmoid(double x) {
  return std::min(x, 0.0) - std::log1p(std::exp(-std::abs(x)));
}

/// The log-odds of the mean of two probabilities.
double log_odds_of_mean(double upper, double lower) {
  const auto log_sum = [](double x, double y) { return std::max(x, y) + std::log1p(std::exp(-std::abs(x - y))); };
  return log_sum(log_sigmoid(upper), log_sigmoid(lower)) - log_sum(log_sigmoid(-upper), log_sigmoid(-lower));
}

/// The sets of one K.
struct AverageKSets {
  double lambda;              // as shown
  at::Tensor sizes;           // [samples] int64
  at::Tensor label_returned;  // [samples] bool
};

std::vector<AverageKSets> sets_of(const AverageKValues& decided, const at::Tensor& labels) {
  const auto& [values, lambdas, ties, are_log_odds] = decided;
  const at::Tensor sizes = set_sizes(values, lambdas, ties);
  const at::Tensor label_values = values.gather(1, labels.unsqueeze(1)).squeeze(1);
  std::vector<AverageKSets> sets;
  for (size_t i = 0; i < lambdas.size(); ++i) {
    sets.push_back({decided.shown(lambdas[i]), sizes.select(0, static_cast<int64_t>(i)),
                    returned_classes(label_values, lambdas[i], ties)});
  }
  return sets;
}

/// The shot groups that hold samples: the beginning of their names, and [samples] bool, which samples they are.
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

/// A class is returned where its value reaches a threshold lambda, one for all samples, that makes sets of K classes on
/// average on the scores that set it (Garcin 2023, Algorithm 1, eq. 5.16-5.17). For every K: the share of samples whose
/// label is returned ("avg5"), the realised mean size of the sets ("avg5_size") and lambda ("avg5_lambda"), and the
/// accuracy's mean over classes, over the shot groups and over `bins` (class_hits.h). The set sizes' histogram comes
/// along, and after it those of the shot groups ("few_avg5", "medium_avg5", "many_avg5": of the samples whose label is
/// of such a class), as in Garcin 2023, Figure 5.4b; a group without a sample has none.
class AverageK : public Metric {
 public:
  AverageK(AverageKOptions options, std::vector<CountBin> bins)
      : options_(std::move(options)), bins_(std::move(bins)) {}

  std::vector<MetricValue> facts() const override {
    std::vector<MetricValue> facts;
    for (const double k : options_.average_k) {
      const MetricValue size = average_k_size(k, kNan);
      append(facts, accuracy_facts(average_k_name(k), bins_, size.name));
      append(facts, {size, average_k_lambda(k, kNan)});
    }
    return facts;
  }

  ResultsOfSamples prepare(const SplitScores& split, const MetricContext& context) const override {
    AverageKValues decided = average_k_values(options_, split, context);
    std::vector<AverageKSets> split_sets = sets_of(decided, split.labels);
    const bool own_thresholds = context.threshold_scores == nullptr;
    const int64_t classes = split.scores.size(1);
    if (!own_thresholds) decided.values.reset();

    return [=, this, split_labels = split.labels, train_counts = context.train_counts](const at::Tensor& samples) {
      const at::Tensor labels = of_samples(split_labels, samples);
      std::vector<AverageKSets> sets = split_sets;
      if (samples.defined() && own_thresholds) {
        AverageKValues chosen = decided;
        chosen.values = of_samples(decided.values, samples);
        chosen.lambdas = decided.thresholds_for(chosen.values, options_.average_k);
        sets = sets_of(chosen, labels);
      } else {
        for (AverageKSets& k_sets : sets) {
          k_sets.sizes = of_samples(k_sets.sizes, samples);
          k_sets.label_returned = of_samples(k_sets.label_returned, samples);
        }
      }
      const auto groups = shot_group_samples(labels, train_counts);
      EvaluationResult result;
      for (size_t i = 0; i < sets.size(); ++i) {
        const auto& [lambda, sizes, label_returned] = sets[i];
        const double k = options_.average_k[i];
        const std::string name = average_k_name(k);
        result.set_sizes.push_back({name, counts_of(sizes, classes + 1)});
        const MetricValue size = average_k_size(k, mean_of_counts(result.set_sizes.back().counts));
        append(result.values,
               accuracies(name, count_hits(label_returned, labels, classes), train_counts, bins_, size.name));
        append(result.values, {size, average_k_lambda(k, lambda)});
        for (const auto& [prefix, is_in] : groups)
          result.set_sizes.push_back({prefix + name, counts_of(sizes.masked_select(is_in), classes + 1)});
      }
      return result;
    };
  }

 private:
  AverageKOptions options_;
  std::vector<CountBin> bins_;
};

}  // namespace

std::string average_k_name(double k) {
  return fmt::format("avg{}", k);
}

MetricValue average_k_size(double k, double size) {
  return {average_k_name(k) + "_size", size, MetricUnit::kClasses, MeanOver::kSamples, Better::kNeither};
}

MetricValue average_k_lambda(double k, double lambda) {
  return {average_k_name(k) + "_lambda", lambda, MetricUnit::kThreshold, MeanOver::kSamples, Better::kNeither};
}

const config::Named<AverageKScore>& average_k_scores() {
  static const config::Named<AverageKScore> kNames{
      {"softmax", AverageKScore::kSoftmax}, {"sigmoid", AverageKScore::kSigmoid}, {"raw", AverageKScore::kRaw}};
  return kNames;
}

config::Keys AverageKOptions::keys() {
  return {
      config::key(
          "average_k", &AverageKOptions::average_k, {2, 5},
          "The K of the average-K accuracies, whole or not: avg5, avg5_size (realised mean size of the sets), "
          "avg5_lambda, macro_avg5 (mean over classes), few_avg5, medium_avg5 and many_avg5. The default leaves out "
          "K above the number of classes.")
          .above(0)
          .distinct()
          .in("classes"),
      config::key(
          "average_k_score", &AverageKOptions::average_k_score, AverageKScore::kSoftmax,
          "What is compared with the threshold: softmax (Garcin 2023, Algorithm 1), sigmoid, or the raw scores. "
          "The scale of a loss with normalised scores multiplies them before softmax and sigmoid.",
          average_k_scores()),
      config::key(
          "average_k_ties", &AverageKOptions::average_k_ties, Ties::kKeepAll,
          "Values equal to the threshold: keep_all returns them (Garcin 2023, Algorithm 1), and sets may get larger "
          "than K on average; strict does not (the constraint of eq. 3.5).",
          {{"keep_all", Ties::kKeepAll}, {"strict", Ties::kStrict}}),
      config::key("threshold_from", &AverageKOptions::threshold_from, "val",
                  "The images that set average-K's thresholds: val, same (the split that is evaluated), or a folder of "
                  "images, which need no labels.")
          .not_empty()};
}

std::vector<double> AverageKValues::thresholds_for(const at::Tensor& others, std::span<const double> ks) const {
  return are_log_odds ? average_k_thresholds(others, ks, ties, log_odds_of_mean)
                      : average_k_thresholds(others, ks, ties);
}

double AverageKValues::shown(double lambda) const {
  return are_log_odds && std::isfinite(lambda) ? 1 / (1 + std::exp(-lambda)) : lambda;
}

AverageKValues average_k_values(const AverageKOptions& options, const SplitScores& split,
                                const MetricContext& context) {
  const AverageKScore score = options.average_k_score;
  const auto decided = [&](bool are_log_odds, const auto& values_of) {
    AverageKValues result{values_of(split.scores), {}, options.average_k_ties, are_log_odds};
    result.lambdas = result.thresholds_for(
        context.threshold_scores ? values_of(*context.threshold_scores) : result.values, options.average_k);
    return result;
  };
  if (score == AverageKScore::kRaw) return decided(false, [](const at::Tensor& scores) { return scores; });
  const auto scaled = [&](const at::Tensor& scores) {
    return context.score_scale == 1.0 ? scores : scores.mul(context.score_scale);
  };
  AverageKValues result =
      decided(false, [&](const at::Tensor& scores) { return probabilities_of(scaled(scores), score); });
  // Where a network is so sure that a threshold lies at 0 or 1, probabilities tie. Log-odds do not, and take several
  // times the memory and the time.
  const bool ties = std::ranges::any_of(result.lambdas, [](double lambda) {
    return (lambda >= 0 && lambda < kSmallestFloat) || (lambda > 1 - kFloatRounding && std::isfinite(lambda));
  });
  const bool is_certain = score == AverageKScore::kSoftmax && split.scores.size(1) == 1;  // infinite log-odds
  if (!ties || is_certain) return result;
  return decided(true, [&](const at::Tensor& scores) { return log_odds_of(scaled(scores), score); });
}

std::unique_ptr<Metric> make_average_k(AverageKOptions options, std::vector<CountBin> bins) {
  return std::make_unique<AverageK>(std::move(options), std::move(bins));
}

MetricEntry average_k_entry() {
  return {
      .name = "average_k",
      .help =
          "Average-K accuracy: share of samples whose label is in sets of K classes on average, cut at one threshold for "
          "all samples (Garcin 2023, Algorithm 1, eq. 5.16-5.17); realised set size, mean over classes and shot groups.",
      .keys = AverageKOptions::keys(),
      .make = [](const config::Config& config) {
        return make_average_k(config.read<AverageKOptions>("eval"), CountBinOptions::bins_of(config));
      }};
}

}  // namespace settrain
