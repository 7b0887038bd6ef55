// sets_of(): the sets of a calibrated rule.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "metrics/count.h"
#include "metrics/sets/calibrate.h"
#include "metrics/sets/conformal_scores.h"
#include "metrics/sets/score_rows.h"
#include "metrics/split_scores.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

using RuleKind = SetRule::Kind;

/// The smallest number in [0, high] for which `is_in` holds, as it then does for all larger ones; infinite where there
/// is none. Goes by halves through the bits of the numbers, which order as they do.
template <class IsIn>
double smallest_in(double high, const IsIn& is_in) {
  if (!is_in(high)) return std::numeric_limits<double>::infinity();
  uint64_t low = 0, in = std::bit_cast<uint64_t>(high);
  while (low < in) {
    const uint64_t middle = low + (in - low) / 2;
    if (is_in(std::bit_cast<double>(middle))) {
      in = middle;
    } else {
      low = middle + 1;
    }
  }
  return std::bit_cast<double>(in);
}

/// The limits of a rule for every class, in the form that the loops over images need.
struct ClassLimits {
  explicit ClassLimits(const CalibratedRule& rule)
      : thresholds(static_cast<size_t>(rule.classes)),
        most_ranks(rule.most_ranks.empty() ? std::vector<int64_t>(thresholds.size(), rule.classes) : rule.most_ranks),
        always(thresholds.size()) {
    if (rule.thresholds.empty()) return;
    for (size_t c = 0; c < thresholds.size(); ++c) {
      thresholds[c] = rule.thresholds[rule.thresholds.size() == 1 ? 0 : c];
      const bool finite = thresholds[c] < kAlwaysIn;
      always[c] = !finite && most_ranks[c] >= rule.classes;
      if (finite) largest_threshold = std::max(largest_threshold, thresholds[c]);
      if (!finite && !always[c]) largest_rank = std::max(largest_rank, most_ranks[c]);
    }
  }

  std::vector<DoubleDouble> thresholds;  // [classes]
  std::vector<int64_t> most_ranks;       // [classes]
  std::vector<char> always;              // [classes] whether the class is in every set
  // A class with a higher score than the first and a higher rank than the second is in no set, unless it is in every
  // one.
  DoubleDouble largest_threshold = -kAlwaysIn;  // of the finite ones
  int64_t largest_rank = 0;                     // of classes without a finite threshold
};

enum class Next { kIn, kOut, kEnd };

/// Walks down an image's classes. next(rank) says whether the class at `rank` is in the set, or that neither it nor a
/// class behind it is. `always` [classes]: those in every set.
template <class T, class GetNext>
void walk_row(RankedRow<T>& ranked, const ScoreRow<T>& row, const std::vector<char>& always, bool* set, GetNext next) {
  std::memcpy(set, always.data(), always.size());
  for (int64_t rank = 0; rank < row.classes; ++rank) {
    const Next verdict = next(rank);
    if (verdict == Next::kEnd) break;
    if (verdict == Next::kIn) set[ranked.at(rank)] = true;
  }
}

/// Walks down each image's classes; `make_next(ranked)` makes the function of an image that walk_row() takes.
template <class T, class MakeNext>
void walk(const CalibratedRule& rule, const at::Tensor& scores, const std::vector<char>& always, bool* sets,
          const MakeNext& make_next) {
  const int64_t classes = rule.classes;
  for_each_score_row<T>(scores, rule.probability, [&] {
    return [=, &always, &make_next, ranked = RankedRow<T>(classes)](const ScoreRow<T>& row) mutable {
      ranked.start(row);
      walk_row<T>(ranked, row, always, sets + row.image * classes, make_next(ranked));
    };
  });
}

bool is_within(const ProbabilityBounds& bounds, size_t category, double p, double rest) {
  return p > 0.5 ? rest <= bounds.most_rest[category] : p >= bounds.least[category];
}

/// The limits of a class' log-probability from which float32 knows whether it is in a set, see softmax_set().
struct FloatLimits {
  explicit FloatLimits(const ProbabilityBounds& bounds) {
    constexpr double kOfTail = -500;  // see kLeastExponent
    const auto classes = static_cast<double>(bounds.least.size());
    for (size_t c = 0; c < bounds.least.size(); ++c) {
      const bool is_small = bounds.least[c] <= 0.5;
      const double least = is_small                   ? std::log(bounds.least[c])
                           : bounds.most_rest[c] >= 0 ? std::log1p(-bounds.most_rest[c])
                                                      : std::numeric_limits<double>::infinity();
      are_known &= std::isinf(least) || least > kOfTail;
      const double error = std::isinf(least) ? 0 : 2e-5 + 4e-9 * classes + 4e-7 * std::abs(least);
      out_below.push_back(static_cast<float>(least - error));
      in_from.push_back(static_cast<float>(least + error));
    }
  }

  bool are_known = true;  // false: there are others than logarithms can tell
  std::vector<float> out_below{}, in_from{};
};

// The set of a row by float64.
template <class T>
void set_by_probability(const ProbabilityBounds& bounds, const ScoreRow<T>& row, bool* set) {
  const double* least = bounds.least.data();
  for (int64_t c = 0; c < row.classes; ++c) set[c] = row.p[c] >= least[c];
  if (count_above(row.p, row.classes, 0.5) == 0) return;
  for (int64_t c = 0; c < row.classes; ++c) {
    if (row.p[c] > 0.5) set[c] = is_within(bounds, static_cast<size_t>(c), row.p[c], row.rest(c));
  }
}

template <class T>
void sets_by_probability(const CalibratedRule& rule, const at::Tensor& scores, const ClassLimits& limits, bool* sets) {
  const ProbabilityBounds bounds = probability_bounds(rule);
  if (rule.most_ranks.empty()) {
    const FloatLimits quick(bounds);
    const bool is_quick = rule.probability == ProbabilityKind::kSoftmax && quick.are_known;
    const auto quick_set = SETTRAIN_PICK(instruction_set(), softmax_set);
    for_each_image<T>(scores, rule.probability, [&] {
      return [&, sets](ScoreRowReader<T>& read, int64_t image) {
        bool* set = sets + image * rule.classes;
        if constexpr (std::is_same_v<T, float>) {
          const float* row = scores.const_data_ptr<float>() + image * rule.classes;
          if (is_quick && quick_set(row, rule.classes, quick.out_below.data(), quick.in_from.data(), set)) return;
        }
        set_by_probability(bounds, read(image), set);
      };
    });
    return;
  }
  const int64_t last = *std::max_element(limits.most_ranks.begin(), limits.most_ranks.end());
  walk<T>(rule, scores, limits.always, sets, [&, last](RankedRow<T>& ranked) {
    return [&, last](int64_t rank) {
      if (rank >= last) return Next::kEnd;
      const auto c = static_cast<size_t>(ranked.at(rank));
      const bool is_in = rank < limits.most_ranks[c] && is_within(bounds, c, ranked.p(rank), ranked.rest(rank));
      return is_in ? Next::kIn : Next::kOut;
    };
  });
}

/// Makes the sets of aps by a histogram of the scores in place of an order: its sums are bounds of the probability
/// behind each class, which tell most classes from their thresholds. Where many classes have thresholds of their own,
/// the largest of these is deep in the order.
class HistogramOfRow {
 public:
  explicit HistogramOfRow(const ClassLimits& limits)
      : bins_(limits.thresholds.size()), error_(4e-16 * (static_cast<double>(bins_.size()) + 16)) {
    for (const DoubleDouble& threshold : limits.thresholds) {
      least_.push_back(-(threshold.high + threshold.low));
      is_tail_ |= least_.back() > 0 && least_.back() < kSumWithoutTail;
    }
  }

  /// Returns false where it cannot tell, or not fast, and `set` is not made.
  template <class T>
  bool make_set(const ScoreRow<T>& row, double u, bool* set) {
    if (is_tail_) return false;
    fill(row.exact, row.p);
    undecided_.clear();
    for (size_t c = 0; c < bins_.size(); ++c) {
      const size_t bin = bins_[c];
      set[c] = is_above(behind_[bin] + u * row.p[c], c);
      if (!set[c] && !is_below(behind_[bin] + sums_[bin], c)) undecided_.push_back(c);
    }
    constexpr size_t kFew = 16;
    if (undecided_.size() > kFew) return false;
    for (const size_t c : undecided_) {
      double value = behind_[bins_[c]] + u * row.p[c];
      for (size_t i = 0; i < bins_.size(); ++i) {
        const bool is_behind = row.exact[i] < row.exact[c] || (row.exact[i] == row.exact[c] && i > c);
        if (bins_[i] == bins_[c] && is_behind) value += row.p[i];
      }
      set[c] = is_above(value, c);
      if (!set[c] && !is_below(value, c)) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kBins = 512;
  static constexpr double kBinsOfUnit = 16;  // of the scores

  // Bins go by the scores, as ranks do: probabilities of nearly equal ones might be rounded into another order.
  void fill(const double* scores, const double* p) {
    const double largest = *std::max_element(scores, scores + bins_.size());
    for (size_t c = 0; c < bins_.size(); ++c) {
      bins_[c] = static_cast<uint16_t>(std::min((largest - scores[c]) * kBinsOfUnit, kBins - 1.0));
    }
    sums_.fill(0);
    for (size_t c = 0; c < bins_.size(); ++c) sums_[bins_[c]] += p[c];
    double sum = 0;
    for (size_t bin = kBins; bin-- > 0; sum += sums_[bin]) behind_[bin] = sum;
  }

  bool is_above(double value, size_t category) const { return value * (1 - error_) >= least_[category]; }
  bool is_below(double value, size_t category) const { return value * (1 + error_) < least_[category]; }

  std::vector<double> least_;           // [classes] the thresholds, as least probabilities behind a class
  std::vector<uint16_t> bins_;          // [classes]
  std::array<double, kBins> sums_{};    // of the probabilities in each bin
  std::array<double, kBins> behind_{};  // the sum of those behind it
  std::vector<size_t> undecided_{};     // classes
  double error_;                        // of sums, relative
  bool is_tail_ = false;                // whether there are thresholds that sums of the tail would tell wrongly
};

template <class T>
void ranked_sets(const CalibratedRule& rule, const at::Tensor& scores, const ClassLimits& limits, int64_t first_image,
                 bool* sets) {
  const bool by_histogram =
      rule.rule.score == ConformalScore::kAps && rule.thresholds.size() > 1 && rule.most_ranks.empty();
  for_each_score_row<T>(scores, rule.probability, [&] {
    return [&, sets, first_image, by_histogram, ranked = RankedRow<T>(rule.classes),
            histogram = HistogramOfRow(limits)](const ScoreRow<T>& row) mutable {
      const double u = rule.rule.randomised ? set_noise(rule.seed, SetNoise::kJudgedImage, first_image + row.image)
                                            : fixed_u(rule.rule.score);
      bool* set = sets + row.image * rule.classes;
      if (by_histogram && histogram.make_set(row, u, set)) return;
      ranked.start(row);
      walk_row<T>(ranked, row, limits.always, set, [&, score = RankedScore(rule, u)](int64_t rank) mutable {
        const auto [category, p, behind] = ranked.entry(rank);
        const auto c = static_cast<size_t>(category);
        const DoubleDouble value = score.next(p, behind);
        if (value > limits.largest_threshold && rank >= limits.largest_rank) return Next::kEnd;
        return value <= limits.thresholds[c] && rank < limits.most_ranks[c] ? Next::kIn : Next::kOut;
      });
    };
  });
}

template <class T>
void tree_sets(const CalibratedRule& rule, const at::Tensor& scores, bool* sets) {
  const NodeCover tree(rule.tree, rule.classes);
  const DoubleDouble threshold = rule.thresholds.front();
  for_each_score_row<T>(scores, rule.probability, [&] {
    return [&, sets, ranked = RankedRow<T>(rule.classes),
            answer = GrowingAnswer(tree, rule.rule.nodes)](const ScoreRow<T>& row) mutable {
      bool* set = sets + row.image * rule.classes;
      std::fill_n(set, rule.classes, false);
      ranked.start(row);
      answer.start(row.p);
      for (int64_t rank = 0; answer.grow_by_next(ranked, rank);) {
        if (DoubleDouble(answer.score()) > threshold) break;
        std::ranges::copy(answer.held(), set);
      }
    };
  });
}

template <class T>
void make_sets(const CalibratedRule& rule, const at::Tensor& scores, int64_t first_image, bool* sets) {
  const ClassLimits limits(rule);
  switch (rule.rule.kind) {
    case RuleKind::kTop: {
      const auto k = static_cast<int64_t>(rule.rule.level);
      walk<T>(rule, scores, limits.always, sets,
              [k](RankedRow<T>&) { return [k](int64_t rank) { return rank < k ? Next::kIn : Next::kEnd; }; });
      return;
    }
    case RuleKind::kError:
      walk<T>(rule, scores, limits.always, sets,
              [error = rule.rule.level * (1 + kRoundingShare)](RankedRow<T>& ranked) {
                return [error, &ranked, outside = 1.0](int64_t rank) mutable {
                  if (outside <= error) return Next::kEnd;
                  outside = ranked.entry(rank).behind;
                  return Next::kIn;
                };
              });
      return;
    case RuleKind::kConformal:
      if (rule.rule.score == ConformalScore::kTree) return tree_sets<T>(rule, scores, sets);
      if (is_ranked(rule.rule.score)) return ranked_sets<T>(rule, scores, limits, first_image, sets);
      [[fallthrough]];
    default:
      sets_by_probability<T>(rule, scores, limits, sets);
  }
}

/// Puts the class with the largest score, of equal ones the first, into the sets that are empty. At a place this is the
/// largest score among the classes that occur.
template <class T>
void fill_empty_sets(const CalibratedRule& rule, const at::Tensor& scores, bool* sets) {
  const auto occurs = [&](int64_t c) {
    return rule.place_weights.empty() || rule.place_weights[static_cast<size_t>(c)] > 0;
  };
  for (int64_t i = 0; i < scores.size(0); ++i, sets += rule.classes) {
    if (std::find(sets, sets + rule.classes, true) != sets + rule.classes) continue;
    const T* row = scores.const_data_ptr<T>() + i * rule.classes;
    int64_t best = -1;
    for (int64_t c = 0; c < rule.classes; ++c) {
      if (occurs(c) && (best < 0 || row[c] > row[best])) best = c;
    }
    if (best >= 0) sets[best] = true;
  }
}

template <class T>
void copy_probabilities(const at::Tensor& scores, ProbabilityKind kind, double* to) {
  for_each_score_row<T>(scores, kind, [&] {
    return [to](const ScoreRow<T>& row) { std::copy_n(row.p, row.classes, to + row.image * row.classes); };
  });
}

}  // namespace

at::Tensor sets_of(const CalibratedRule& rule, const at::Tensor& scores, int64_t first_image) {
  check_score_layout("scores", scores);
  check_shape("scores", scores.sizes(), {kAnySize, rule.classes});
  const at::Tensor rows = scores.detach().cpu().contiguous();
  at::Tensor sets = at::empty(rows.sizes(), at::kBool);
  const auto make = rows.scalar_type() == at::kDouble ? make_sets<double> : make_sets<float>;
  make(rule, rows, first_image, sets.data_ptr<bool>());
  if (rule.rule.nonempty) {
    const auto fill = rows.scalar_type() == at::kDouble ? fill_empty_sets<double> : fill_empty_sets<float>;
    fill(rule, rows, sets.data_ptr<bool>());
  }
  return sets;
}

ProbabilityBounds probability_bounds(const CalibratedRule& rule) {
  const ClassLimits limits(rule);
  ProbabilityBounds bounds;
  for (size_t c = 0; c < limits.thresholds.size(); ++c) {
    const DoubleDouble threshold = limits.thresholds[c];
    const auto is_in = [&](double p, double rest) {
      if (rule.rule.kind == RuleKind::kConformal) return class_score(rule, c, p, rest) <= threshold;
      // The threshold of average-error is a score times -1, that of average a probability.
      if (rule.rule.kind == RuleKind::kAverageError) return class_score(rule, c, p, rest) <= -threshold;
      return (p <= 0.5 ? DoubleDouble(p) : DoubleDouble::sum(1, -rest)) >= threshold;
    };
    const double least = smallest_in(0.5, [&](double p) { return is_in(p, 1 - p); });
    const double out = smallest_in(1, [&](double rest) { return !is_in(1, rest); });
    bounds.least.push_back(least);
    // A class that is in with a probability of 1/2 is in with all larger ones.
    bounds.most_rest.push_back(least <= 0.5 || std::isinf(out) ? 1 : std::nextafter(out, -1));
  }
  return bounds;
}

at::Tensor probabilities_of(const at::Tensor& scores, ProbabilityKind kind) {
  check_score_layout("scores", scores);
  const at::Tensor rows = scores.detach().cpu().contiguous();
  at::Tensor probabilities = at::empty(rows.sizes(), at::kDouble);
  const auto copy = rows.scalar_type() == at::kDouble ? copy_probabilities<double> : copy_probabilities<float>;
  copy(rows, kind, probabilities.mutable_data_ptr<double>());
  return probabilities;
}

}  // namespace settrain
