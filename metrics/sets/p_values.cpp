#include "metrics/sets/p_values.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "metrics/sets/conformal_scores.h"
#include "metrics/sets/rules/rule_terms.h"
#include "metrics/sets/score_rows.h"
#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

[[noreturn]] void refuse_rule(const CalibratedRule& rule, const std::string& why) {
  throw ConfigError(fmt::format("rule '{}': {}", rule.rule.name(), why));
}

bool is_classwise(const CalibratedRule& rule) {
  return rule.rule.threshold == ConformalThreshold::kClasswise;
}

/// Calibration images by ascending score, with the summed weights from each one to the last.
struct Tail {
  std::vector<DoubleDouble> scores;
  std::vector<double> weights;  // [scores + 1]

  double from(DoubleDouble score) const {
    return weights[static_cast<size_t>(std::ranges::lower_bound(scores, score) - scores.begin())];
  }
};

/// `weight_of(i)`: that of the image with number i; 0 leaves it out.
template <class Weight>
Tail tail_of(const LabelScores& images, const Weight& weight_of) {
  std::vector<size_t> order(images.scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t i) { return weight_of(i) == 0; });
  std::ranges::stable_sort(order, {}, [&](size_t i) { return images.scores[i]; });
  Tail tail{{}, std::vector<double>(order.size() + 1)};
  for (const size_t i : order) tail.scores.push_back(images.scores[i]);
  for (size_t place = order.size(); place-- > 0;)
    tail.weights[place] = tail.weights[place + 1] + weight_of(order[place]);
  return tail;
}

/// The calibration images of each class, as one of a few tails.
class Tails {
 public:
  explicit Tails(const CalibratedRule& rule) : rule_(rule), place_(static_cast<size_t>(rule.classes)) {
    const auto weight = [&](size_t i) { return weight_of(rule.label_scores.labels[i]); };
    if (rule.rule.threshold == ConformalThreshold::kMarginal) {
      tails_.push_back(tail_of(rule.label_scores, weight));
      return;
    }
    std::map<int64_t, size_t> places;  // by class or superclass
    for (int64_t c = 0; c < rule.classes; ++c) {
      const auto at = static_cast<size_t>(c);
      const int64_t group = is_classwise(rule) ? c : rule.superclass_of[at];
      const auto [found, is_new] = places.emplace(group, tails_.size());
      place_[at] = found->second;
      if (!is_new) continue;
      tails_.push_back(tail_of(rule.label_scores, [&](size_t i) {
        const int64_t label = rule.label_scores.labels[i];
        return (is_classwise(rule) ? label : rule.superclass_of[static_cast<size_t>(label)]) == group ? weight(i) : 0;
      }));
    }
  }

  /// The p-value of a class with this score.
  double p_value(int64_t category, DoubleDouble score) const {
    const double own = weight_of(category);
    if (own == 0) return 0;
    if (std::isinf(own)) return 1;
    const Tail& tail = tails_[place_[static_cast<size_t>(category)]];
    return (tail.from(score) + own) / (tail.weights.front() + own);
  }

 private:
  // 1 where the rule is for no place. The images of a class that always is in a set are none.
  double weight_of(int64_t category) const {
    return rule_.place_weights.empty() ? 1 : rule_.place_weights[static_cast<size_t>(category)];
  }

  const CalibratedRule& rule_;
  std::vector<Tail> tails_;
  std::vector<size_t> place_;  // [classes] in tails_
};

/// The conformal scores of all classes of an image.
template <class T>
class ClassScores {
 public:
  ClassScores(const CalibratedRule& rule, const NodeCover* tree)
      : rule_(rule),
        ranked_(rule.classes),
        answer_(tree ? std::optional<GrowingAnswer>({*tree, rule.rule.nodes}) : std::nullopt) {}

  /// Calls use(class, score) for each class. `number`: the image's, from which a randomised rule draws.
  template <class Use>
  void operator()(const ScoreRow<T>& row, int64_t number, const Use& use) {
    if (!is_ranked(rule_.rule.score)) {
      for (int64_t c = 0; c < row.classes; ++c)
        use(c, class_score(rule_, static_cast<size_t>(c), row.p[c], row.rest(c)));
      return;
    }
    ranked_.start(row);
    if (answer_) return grow(row, use);
    const double u =
        rule_.rule.randomised ? set_noise(rule_.seed, SetNoise::kJudgedImage, number) : fixed_u(rule_.rule.score);
    RankedScore score(rule_, u);
    for (int64_t rank = 0; rank < row.classes; ++rank) {
      const auto [category, p, behind] = ranked_.entry(rank);
      use(category, score.next(p, behind));
    }
  }

 private:
  template <class Use>
  void grow(const ScoreRow<T>& row, const Use& use) {
    answer_->start(row.p);
    std::vector<char> before(static_cast<size_t>(row.classes));
    for (int64_t rank = 0; answer_->grow_by_next(ranked_, rank);) {
      for (int64_t c = 0; c < row.classes; ++c) {
        if (answer_->holds(c) && !before[static_cast<size_t>(c)]) use(c, DoubleDouble(answer_->score()));
      }
      before = answer_->held();
    }
  }

  const CalibratedRule& rule_;
  RankedRow<T> ranked_;
  std::optional<GrowingAnswer> answer_;
};

template <class T>
void find_p_values(const CalibratedRule& rule, const at::Tensor& scores, int64_t first_image, double* p_values) {
  const Tails tails(rule);
  const std::optional<NodeCover> tree =
      rule.tree.empty() ? std::nullopt : std::optional<NodeCover>(std::in_place, rule.tree, rule.classes);
  for_each_score_row<T>(scores, rule.probability, [&] {
    return [&, p_values, first_image,
            class_scores = ClassScores<T>(rule, tree ? &*tree : nullptr)](const ScoreRow<T>& row) mutable {
      double* p = p_values + row.image * rule.classes;
      class_scores(row, first_image + row.image,
                   [&](int64_t c, DoubleDouble score) { p[c] = tails.p_value(c, score); });
    };
  });
}

/// The largest score with which a class of weight `own` is in the set. `images` by ascending score.
DoubleDouble weighted_threshold(const Tail& images, double own, double alpha) {
  if (own == 0) return -kAlwaysIn;
  if (std::isinf(own)) return kAlwaysIn;
  const double all = images.weights.front() + own;
  // Rounding errors in a sum of equal weights do not count, see conformal_rank().
  const double beyond = alpha * all * (1 + 1e-12) - own;
  if (beyond < 0) return kAlwaysIn;
  const auto first = std::ranges::partition_point(images.weights, [&](double weight) { return weight > beyond; });
  // The smallest score at least, as conformal_rank() has it: `beyond` reaches the first weight by rounding alone.
  return images.scores[static_cast<size_t>(std::max<std::ptrdiff_t>(1, first - images.weights.begin())) - 1];
}

PlaceWeights counted(const CalibratedRule& rule, std::vector<double> weights) {
  PlaceWeights place{.weights = std::move(weights)};
  place.never = std::ranges::count(place.weights, 0.0);
  place.always = std::ranges::count(place.weights, kAlwaysIn);
  double sum = 0, squares = 0;
  for (const int64_t label : rule.label_scores.labels) {
    const double w = place.weights[static_cast<size_t>(label)];
    sum += w;
    squares += w * w;
  }
  place.effective_images = squares > 0 ? sum * sum / squares : 0;
  return place;
}

std::vector<double> calibration_shares(const CalibratedRule& rule) {
  check_has_p_values(rule);
  std::vector<double> shares(static_cast<size_t>(rule.classes));
  for (const int64_t label : rule.label_scores.labels) shares[static_cast<size_t>(label)] += 1;
  for (double& share : shares) share /= static_cast<double>(rule.label_scores.labels.size());
  return shares;
}

}  // namespace

void check_has_p_values(const CalibratedRule& rule) {
  using enum ConformalThreshold;
  if (rule.rule.kind != SetRule::Kind::kConformal)
    refuse_rule(rule, "it has no p-values: these are for conformal rules");
  if (rule.rule.takes_label_sets()) refuse_rule(rule, "it has no p-values: it is about all labels of an image at once");
  const auto threshold = rule.rule.threshold;
  if (threshold != kMarginal && threshold != kClasswise && threshold != kSuperclass)
    refuse_rule(rule, "it has no p-values: these need a threshold of all images, of the class' or of the superclass'");
  if (rule.label_scores.scores.empty())
    refuse_rule(rule, "an earlier version calibrated it, and did not keep the images' scores: calibrate it again");
}

at::Tensor p_values_of(const CalibratedRule& rule, const at::Tensor& scores, int64_t first_image) {
  check_has_p_values(rule);
  check_score_layout("scores", scores);
  check_shape("scores", scores.sizes(), {kAnySize, rule.classes});
  const at::Tensor rows = scores.detach().cpu().contiguous();
  at::Tensor p_values = at::empty(rows.sizes(), at::kDouble);
  const auto find = rows.scalar_type() == at::kDouble ? find_p_values<double> : find_p_values<float>;
  find(rule, rows, first_image, p_values.mutable_data_ptr<double>());
  return p_values;
}

PlaceWeights place_weights(const CalibratedRule& rule, const std::vector<double>& prior) {
  const std::vector<double> shares = calibration_shares(rule);
  const double largest = *std::ranges::max_element(prior);  // the sum of large weights may overflow
  double sum = 0;
  for (const double weight : prior) sum += weight / largest;
  std::vector<double> weights;
  for (size_t c = 0; c < shares.size(); ++c)
    weights.push_back(prior[c] == 0 ? 0 : shares[c] == 0 ? kAlwaysIn : prior[c] / largest / sum / shares[c]);
  return counted(rule, std::move(weights));
}

PlaceWeights place_weights(const CalibratedRule& rule, const std::vector<bool>& occurs) {
  const std::vector<double> shares = calibration_shares(rule);
  std::vector<double> weights;
  for (size_t c = 0; c < shares.size(); ++c) weights.push_back(!occurs[c] ? 0 : shares[c] == 0 ? kAlwaysIn : 1);
  return counted(rule, std::move(weights));
}

CalibratedRule for_place(const CalibratedRule& rule, const PlaceWeights& place) {
  check_has_p_values(rule);
  if (!rule.tree.empty())
    refuse_rule(rule, "its answers are nodes of a taxonomy, and a place has some of their classes");
  if (rule.rule.threshold == ConformalThreshold::kSuperclass)
    refuse_rule(rule, "rules for a place have a threshold of all images, or one a class");
  CalibratedRule result = rule;
  if (is_classwise(rule)) {
    for (size_t c = 0; c < place.weights.size(); ++c) {
      const bool occurs = place.weights[c] > 0;
      result.place_weights.push_back(occurs ? 1 : 0);
      if (!occurs) result.thresholds[c] = -kAlwaysIn;
    }
    return result;
  }
  result.place_weights = place.weights;
  const Tail images = tail_of(
      rule.label_scores, [&](size_t i) { return place.weights[static_cast<size_t>(rule.label_scores.labels[i])]; });
  result.thresholds.clear();
  for (const double weight : place.weights)
    result.thresholds.push_back(weighted_threshold(images, weight, rule.rule.level));
  if (!is_guarantee(rule.guarantee)) return result;
  result.guarantee = fmt::format(
      "at the place, the set holds the label of a new image with probability at least {:.10g}, on average over images, "
      "where classes look there as in the calibration images and have the shares that are assumed; approximately where "
      "these are estimates",
      1 - rule.rule.level);
  return result;
}

}  // namespace settrain
