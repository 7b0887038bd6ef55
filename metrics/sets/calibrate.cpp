#include "metrics/sets/calibrate.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "metrics/average_k_threshold.h"
#include "metrics/label_rank.h"
#include "metrics/sets/conformal_scores.h"
#include "metrics/sets/conformal_thresholds.h"
#include "metrics/sets/rules/rule_terms.h"
#include "metrics/sets/score_rows.h"
#include "metrics/split_scores.h"
#include "src/core/error.h"
#include "src/core/random.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

std::vector<int64_t> whole_numbers(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<int64_t>(), tensor.const_data_ptr<int64_t>() + tensor.numel()};
}

/// The largest threshold with at most a share `error` of the labels' probabilities below it. `scores` are the
/// probabilities times -1.
DoubleDouble average_error_threshold(std::vector<DoubleDouble> scores, double error) {
  const auto images = std::ssize(scores);
  const auto below = static_cast<int64_t>(std::floor(error * static_cast<double>(images) * (1 + 1e-14)));
  const auto place = scores.begin() + std::min(below, images - 1);
  std::nth_element(scores.begin(), place, scores.end(), std::greater<>());
  return -*place;
}

/// [classes] the quantile of each class' superclass.
std::vector<DoubleDouble> superclass_thresholds(const std::vector<DoubleDouble>& scores,
                                                const std::vector<int64_t>& labels,
                                                const std::vector<int64_t>& superclass_of, double alpha) {
  std::map<int64_t, int64_t> numbers;
  std::vector<int64_t> group_of_class, group_of_image;
  for (const int64_t superclass : superclass_of) {
    group_of_class.push_back(numbers.emplace(superclass, std::ssize(numbers)).first->second);
  }
  for (const int64_t label : labels) group_of_image.push_back(group_of_class[static_cast<size_t>(label)]);
  const std::vector<DoubleDouble> quantiles = conformal_quantiles(scores, group_of_image, std::ssize(numbers), alpha);
  std::vector<DoubleDouble> thresholds;
  for (const int64_t group : group_of_class) thresholds.push_back(quantiles[static_cast<size_t>(group)]);
  return thresholds;
}

/// Rank calibration (Shi et al. 2024). e_y(k): the share of class y's images whose label has a rank above k. k_y is the
/// smallest k with e_y(k) < alpha, and the threshold the quantile of the class' scores at alpha - e_y(k_y) (Algorithm 1
/// with their second option, eq. 7). A class without images has no limit at all. `ranks` [images] of labels, from 1.
void calibrate_ranks(CalibratedRule& calibrated, const LabelScores& images, const std::vector<int64_t>& ranks) {
  const double alpha = calibrated.rule.level;
  std::vector<std::vector<DoubleDouble>> class_scores(static_cast<size_t>(calibrated.classes));
  std::vector<std::vector<int64_t>> class_ranks(class_scores.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    class_scores[static_cast<size_t>(images.labels[i])].push_back(images.scores[i]);
    class_ranks[static_cast<size_t>(images.labels[i])].push_back(ranks[i]);
  }
  for (size_t c = 0; c < class_scores.size(); ++c) {
    std::vector<int64_t>& sorted = class_ranks[c];
    std::sort(sorted.begin(), sorted.end());
    int64_t most = sorted.empty() ? calibrated.classes : 1;
    // e_y(most). A quotient of whole numbers is as near to alpha as the text that alpha was read from.
    double beyond = 0;
    const auto share_above = [&](int64_t k) {
      return static_cast<double>(sorted.end() - std::upper_bound(sorted.begin(), sorted.end(), k)) /
             static_cast<double>(sorted.size());
    };
    if (!sorted.empty()) {
      // e_y only changes at ranks that occur.
      for (size_t i = 0; (beyond = share_above(most)) >= alpha; ++i) most = sorted[i];
    }
    calibrated.most_ranks.push_back(most);
    calibrated.thresholds.push_back(conformal_quantile(std::move(class_scores[c]), alpha - beyond));
  }
}

/// tau min(q_y, 0) + (1 - tau) q of lac, whose scores are -p: linear in p. A score near -1 is taken as -1 and the rest,
/// 1 - p, which has the digits.
DoubleDouble interpolated(DoubleDouble own, DoubleDouble marginal, double tau) {
  own = std::min(own, DoubleDouble());
  if (tau == 1) return own;
  if (tau == 0) return marginal;
  if (marginal == DoubleDouble(kAlwaysIn)) return marginal;
  const auto is_near = [](DoubleDouble score) { return score.high < -0.5; };
  // 0 minus it, since a probability must not be -0.
  const auto small = [&](DoubleDouble score) { return is_near(score) ? (score.high + 1) + score.low : 0 - score.high; };
  const std::array parts{scaled_probability(small(own), tau), scaled_probability(small(marginal), 1 - tau)};
  if (is_near(own) != is_near(marginal)) {
    return is_near(own) ? DoubleDouble::sum(-tau, parts[0] - parts[1])
                        : DoubleDouble::sum(tau - 1, parts[1] - parts[0]);
  }
  const double both = summed_probability(2, [&parts](int64_t i) { return parts[static_cast<size_t>(i)]; });
  return is_near(own) ? DoubleDouble::sum(-1, both) : -both;
}

/// Tunes raps on a part of the images, drawn at random, and returns the others.
SplitScores tune(CalibratedRule& calibrated, const ClassFacts& facts, const SplitScores& images) {
  constexpr double kShare = 0.3;  // as in the authors' code
  const int64_t all = images.labels.size(0);
  const int64_t tuning = std::max<int64_t>(1, std::llround(kShare * static_cast<double>(all)));
  const std::vector<int64_t> order =
      permutation(all, calibrated.seed, Stream::kSets, 0, static_cast<uint32_t>(SetNoise::kSplit));
  const std::span<const int64_t> drawn(order);
  calibrated.tuned = tuned_penalty(calibrated.rule, facts, samples_of(images, drawn.first(static_cast<size_t>(tuning))),
                                   calibrated.seed);
  calibrated.notes.push_back(
      fmt::format("lambda {:g} and k {} are tuned on {} of the {} calibration images, which set no "
                  "threshold",
                  calibrated.tuned.lambda, calibrated.tuned.k, tuning, all));
  return samples_of(images, drawn.subspan(static_cast<size_t>(tuning)));
}

/// Says where the one threshold of all classes gives more than 1 - alpha, because many scores are the same.
void note_ties(CalibratedRule& calibrated, const std::vector<DoubleDouble>& scores) {
  constexpr double kWorthSaying = 0.01;
  const SetRule& rule = calibrated.rule;
  const DoubleDouble threshold = calibrated.thresholds.front();
  const auto same = std::count(scores.begin(), scores.end(), threshold);
  const double share = static_cast<double>(same) / static_cast<double>(scores.size());
  const bool can_draw = can_be_randomised(rule.score) && !rule.randomised;
  if (is_largest_score(rule, threshold)) {
    calibrated.notes.push_back(fmt::format(
        "the threshold is the largest score there is, which {:.3g} % of the calibration images have: their "
        "label {}. Every set holds all classes; {}",
        100 * share,
        rule.score == ConformalScore::kTree ? "is held by the root alone"
        : is_ranked(rule.score)             ? "has no probability behind it"
                                            : "has a probability or a weight of 0",
        can_draw ? "a larger alpha, or randomised=true, gives smaller ones" : "a larger alpha gives smaller ones"));
  } else if (same > 1 && share > kWorthSaying) {
    calibrated.notes.push_back(
        fmt::format("{:.3g} % of the calibration images have the very score of the threshold, and coverage may be that "
                    "much above {:.10g}{}",
                    100 * share, 1 - rule.level, can_draw ? "; randomised=true avoids it" : ""));
  }
}

void calibrate_conformal(CalibratedRule& calibrated, const ClassFacts& facts, const at::Tensor& scores,
                         const at::Tensor& labels) {
  const SetRule& rule = calibrated.rule;
  const double alpha = rule.level;
  const std::vector<DoubleDouble> s = label_scores(calibrated, scores, labels);
  const std::vector<int64_t> y = whole_numbers(labels);
  using enum ConformalThreshold;
  if (rule.threshold == kMarginal || rule.threshold == kClasswise || rule.threshold == kSuperclass) {
    calibrated.label_scores = {s, y};
  }
  if (rule.threshold == kSuperclass) calibrated.superclass_of = facts.superclass_of;
  switch (rule.threshold) {
    case ConformalThreshold::kMarginal:
      calibrated.thresholds = {conformal_quantile(s, alpha)};
      note_ties(calibrated, s);
      return;
    case ConformalThreshold::kClasswise:
      calibrated.thresholds = conformal_quantiles(s, y, facts.classes, alpha);
      return;
    case ConformalThreshold::kSuperclass:
      calibrated.thresholds = superclass_thresholds(s, y, facts.superclass_of, alpha);
      return;
    case ConformalThreshold::kInterpolated: {
      const DoubleDouble marginal = conformal_quantile(s, alpha);
      calibrated.thresholds = conformal_quantiles(s, y, facts.classes, alpha);
      for (DoubleDouble& threshold : calibrated.thresholds) threshold = interpolated(threshold, marginal, rule.tau);
      return;
    }
    case ConformalThreshold::kRc3p:
      calibrate_ranks(calibrated, {s, y}, whole_numbers(label_ranks(scores, labels).add(1)));
      return;
    case ConformalThreshold::kClustered: {
      ClusteredThresholds clustered = clustered_thresholds(rule, {s, y}, facts.classes, calibrated.seed);
      calibrated.thresholds = std::move(clustered.thresholds);
      calibrated.notes.push_back(std::move(clustered.note));
      return;
    }
    case ConformalThreshold::kFuzzy:
      calibrated.thresholds = fuzzy_thresholds(rule, {s, y}, facts.train_counts, calibrated.seed);
      return;
  }
}

/// The calibration images that are too few where a class has no threshold, in the order of the enumerators of
/// ConformalThreshold.
constexpr std::array kImagesOfThreshold{"in all",
                                        "of the class",
                                        "of the superclass",
                                        "in all",
                                        "of the class",
                                        "of the cluster, in the part of the images that sets thresholds",
                                        "of classes about as rare, and as many that are held out"};

void note_infinite(CalibratedRule& calibrated) {
  const auto infinite = std::ranges::count(calibrated.thresholds, DoubleDouble(kAlwaysIn));
  if (infinite == 0 || calibrated.rule.kind != SetRule::Kind::kConformal) return;
  const std::string needs =
      fmt::format("alpha {} needs {} calibration images", calibrated.rule.level, images_needed(calibrated.rule.level));
  if (calibrated.thresholds.size() == 1) {
    calibrated.notes.push_back(fmt::format("{}, there are {}: every set holds all classes", needs, calibrated.images));
  } else if (!calibrated.most_ranks.empty()) {
    calibrated.notes.push_back(fmt::format(
        "{} of {} classes have no threshold, and are in every set that their largest rank allows: the images "
        "beyond that rank leave a smaller alpha, for which the class has too few",
        infinite, calibrated.classes));
  } else {
    calibrated.notes.push_back(fmt::format("{} of {} classes have no threshold and are in every set: {} {}", infinite,
                                           calibrated.classes, needs,
                                           kImagesOfThreshold[static_cast<size_t>(calibrated.rule.threshold)]));
  }
}

/// A probability as one number that orders as it does and has all its digits: p up to 1/2, and for larger ones 1 - p,
/// by its bits, counted down from those of 1.
struct ProbabilityKey {
  explicit ProbabilityKey(double key) : key(key) {}
  ProbabilityKey(double p, double rest) : key(p <= 0.5 ? p : mirrored(rest)) {}

  double p() const { return key <= 0.5 ? key : 1 - mirrored(key); }
  double rest() const { return key <= 0.5 ? 1 - key : mirrored(key); }
  DoubleDouble exact() const {
    return key <= 0.5 || std::isinf(key) ? DoubleDouble(key) : DoubleDouble::sum(1, -mirrored(key));
  }

  double key;

 private:
  static double mirrored(double x) {
    return std::bit_cast<double>(std::bit_cast<uint64_t>(1.0) + std::bit_cast<uint64_t>(0.5) -
                                 std::bit_cast<uint64_t>(x));
  }
};

/// The key of the mean of two probabilities.
double key_of_mean(double upper, double lower) {
  const ProbabilityKey a(upper), b(lower);
  return ProbabilityKey(std::midpoint(a.p(), b.p()), std::midpoint(a.rest(), b.rest())).key;
}

/// [images, classes] float64.
template <class T>
at::Tensor probability_keys(const at::Tensor& scores, ProbabilityKind kind) {
  at::Tensor keys = at::empty(scores.sizes(), at::kDouble);
  for_each_score_row<T>(scores, kind, [to = keys.mutable_data_ptr<double>()] {
    return [to](const ScoreRow<T>& row) {
      for (int64_t c = 0; c < row.classes; ++c)
        to[row.image * row.classes + c] = ProbabilityKey(row.p[c], row.p[c] <= 0.5 ? 0 : row.rest(c)).key;
    };
  });
  return keys;
}

// Adds a note where ties make the sets larger than was asked for.
void calibrate_average(CalibratedRule& calibrated, const at::Tensor& rows) {
  constexpr double kMostBeyond = 1.05;  // times the size that was asked for
  const auto keys_of = rows.scalar_type() == at::kDouble ? probability_keys<double> : probability_keys<float>;
  const at::Tensor keys = keys_of(rows, calibrated.probability);
  const double threshold =
      average_k_thresholds(keys, std::array{calibrated.rule.level}, Ties::kKeepAll, key_of_mean)[0];
  calibrated.thresholds = {ProbabilityKey(threshold).exact()};
  const double size =
      returned_classes(keys, threshold, Ties::kKeepAll).sum().item<double>() / static_cast<double>(rows.size(0));
  if (size > kMostBeyond * calibrated.rule.level) {
    calibrated.notes.push_back(fmt::format(
        "many classes tie with the threshold, so that the sets of the calibration images have {:.2f} classes "
        "on average instead of {:g}",
        size, calibrated.rule.level));
  }
}

}  // namespace

CalibratedRule calibrate(const SetRule& rule, const ClassFacts& facts, const at::Tensor& scores,
                         const at::Tensor& labels, uint64_t seed) {
  check_suits(rule, facts);
  CalibratedRule calibrated;
  calibrated.rule = rule;
  calibrated.probability = facts.probability;
  calibrated.classes = facts.classes;
  calibrated.seed = seed;
  calibrated.guarantee = guarantee_of(rule);
  if (!needs_images(rule)) return calibrated;

  if (rule.takes_label_sets() && labels.dim() == 2) {
    check_scores("scores", scores);
    check_label_sets(labels, scores);
  } else {
    check_split_layout({scores, labels});
  }
  check_shape("scores", scores.sizes(), {kAnySize, facts.classes});
  SplitScores split{scores.detach().cpu().contiguous(), labels.cpu().contiguous()};
  if (rule.tuning != RapsTuning::kNone) {
    if (split.labels.size(0) < 2)
      throw ConfigError(fmt::format("rule '{}': there is one calibration image, and tuning takes one", rule.name()));
    split = tune(calibrated, facts, split);
  }
  const at::Tensor& rows = split.scores;
  const at::Tensor& row_labels = split.labels;
  calibrated.images = rows.size(0);
  calibrated.class_factor = class_factors(rule, facts);
  if (rule.kind == SetRule::Kind::kConformal && rule.score == ConformalScore::kTree)
    calibrated.tree = facts.taxonomy.parent;
  if (const auto always = std::count(calibrated.class_factor.begin(), calibrated.class_factor.end(), kAlwaysIn)) {
    calibrated.notes.push_back(
        fmt::format("{} of {} classes have no training image: they are in every set", always, calibrated.classes));
  }
  switch (rule.kind) {
    case SetRule::Kind::kAverage:
      calibrate_average(calibrated, rows);
      break;
    case SetRule::Kind::kAverageError:
      calibrated.thresholds = {average_error_threshold(label_scores(calibrated, rows, row_labels), rule.level)};
      break;
    default:
      if (rule.takes_label_sets()) {
        calibrated.thresholds = {risk_threshold(calibrated, rows, row_labels)};
      } else {
        calibrate_conformal(calibrated, facts, rows, row_labels);
      }
  }
  note_infinite(calibrated);
  return calibrated;
}

}  // namespace settrain
