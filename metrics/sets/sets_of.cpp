// sets_of(): the sets of a calibrated rule.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "metrics/checks.h"
#include "metrics/sets/calibrate.h"
#include "metrics/sets/class_score.h"
#include "metrics/sets/descending_row.h"
#include "metrics/sets/ranked_score.h"
#include "metrics/sets/score_rows.h"
#include "metrics/sets/set_noise.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

using RuleKind = SetRule::Kind;

/// The smallest number p >= 0 of type T for which `is_in(p)`, which larger numbers keep; infinite where 2 is not in.
template <class T, class IsIn>
T smallest_in(const IsIn& is_in) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;  // of numbers >= 0, which they order
  Bits low = 0, high = std::bit_cast<Bits>(T{2});
  if (!is_in(2.0)) return std::numeric_limits<T>::infinity();
  while (low < high) {
    const Bits middle = low + (high - low) / 2;
    if (is_in(static_cast<double>(std::bit_cast<T>(middle)))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return std::bit_cast<T>(high);
}

/// What a rule asks of every class, in the form that the loops over images need.
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

  std::vector<double> thresholds;   // [classes]
  std::vector<int64_t> most_ranks;  // [classes]
  std::vector<char> always;         // [classes] whether the class is in every set
  // No class further down the order than both is in a set, but those that are in every set.
  double largest_threshold = -std::numeric_limits<double>::infinity();  // of the finite ones
  int64_t largest_rank = 0;                                             // of classes without a finite threshold
};

/// Sets that hold the first classes of the order, up to one that `next(rank, class, p)` says no class behind can be in.
/// `next` says which classes are in, too.
enum class Next { kIn, kOut, kEnd };

template <class T, class MakeNext>
void walk(const CalibratedRule& rule, const at::Tensor& scores, const std::vector<char>& always, bool* sets,
          const MakeNext& make_next) {
  const int64_t classes = rule.classes;
  for_each_score_row<T>(scores, rule.probability, [&] {
    return [=, &always, &make_next, order = DescendingRow<T>(classes)](int64_t i, const T* row, const T* p) mutable {
      bool* set = sets + i * classes;
      std::memcpy(set, always.data(), always.size());
      order.start(row);
      auto next = make_next(i, p);
      for (int64_t rank = 0; rank < classes; ++rank) {
        const int64_t category = order.at(rank);
        const Next verdict = next(rank, category);
        if (verdict == Next::kEnd) break;
        if (verdict == Next::kIn) set[category] = true;
      }
    };
  });
}

/// The smallest probability with which each class is in a set.
template <class T>
std::vector<T> smallest_of(const CalibratedRule& rule, const ClassLimits& limits) {
  std::vector<T> smallest;
  for (size_t c = 0; c < limits.thresholds.size(); ++c) {
    const double threshold = limits.thresholds[c];
    if (rule.rule.kind == RuleKind::kConformal) {
      smallest.push_back(smallest_in<T>([&](double p) { return class_score(rule, c, p) <= threshold; }));
    } else {
      smallest.push_back(smallest_in<T>([&](double p) { return p >= threshold; }));
    }
  }
  return smallest;
}

template <class T>
void sets_by_probability(const CalibratedRule& rule, const at::Tensor& scores, const ClassLimits& limits, bool* sets) {
  const std::vector<T> smallest = smallest_of<T>(rule, limits);
  const int64_t classes = rule.classes;
  if (rule.most_ranks.empty()) {
    for_each_score_row<T>(scores, rule.probability, [&] {
      return [=, bounds = smallest.data()](int64_t i, const T*, const T* p) {
        for (int64_t c = 0; c < classes; ++c) sets[i * classes + c] = p[c] >= bounds[c];
      };
    });
    return;
  }
  const int64_t last = *std::max_element(limits.most_ranks.begin(), limits.most_ranks.end());
  walk<T>(rule, scores, limits.always, sets, [&](int64_t, const T* p) {
    return [&, p](int64_t rank, int64_t category) {
      if (rank >= last) return Next::kEnd;
      const auto c = static_cast<size_t>(category);
      return rank < limits.most_ranks[c] && p[c] >= smallest[c] ? Next::kIn : Next::kOut;
    };
  });
}

template <class T>
void ranked_sets(const CalibratedRule& rule, const at::Tensor& scores, const ClassLimits& limits, int64_t first_image,
                 bool* sets) {
  walk<T>(rule, scores, limits.always, sets, [&](int64_t i, const T* p) {
    const double u =
        rule.rule.randomised ? set_noise(rule.seed, SetNoise::kJudgedImage, first_image + i) : fixed_u(rule.rule.score);
    return [&, p, score = RankedScore(rule.rule, u)](int64_t rank, int64_t category) mutable {
      const auto c = static_cast<size_t>(category);
      const double value = score.next(static_cast<double>(p[c]));
      if (value > limits.largest_threshold && rank >= limits.largest_rank) return Next::kEnd;
      return value <= limits.thresholds[c] && rank < limits.most_ranks[c] ? Next::kIn : Next::kOut;
    };
  });
}

template <class T>
void make_sets(const CalibratedRule& rule, const at::Tensor& scores, int64_t first_image, bool* sets) {
  const ClassLimits limits(rule);
  switch (rule.rule.kind) {
    case RuleKind::kTop: {
      const auto k = static_cast<int64_t>(rule.rule.level);
      walk<T>(rule, scores, limits.always, sets, [&](int64_t, const T*) {
        return [k](int64_t rank, int64_t) { return rank < k ? Next::kIn : Next::kEnd; };
      });
      return;
    }
    case RuleKind::kError: {
      const double wanted = 1 - rule.rule.level;
      walk<T>(rule, scores, limits.always, sets, [&](int64_t, const T* p) {
        return [=, sum = 0.0](int64_t, int64_t category) mutable {
          if (sum >= wanted) return Next::kEnd;
          sum += static_cast<double>(p[category]);
          return Next::kIn;
        };
      });
      return;
    }
    case RuleKind::kConformal:
      if (is_ranked(rule.rule.score)) return ranked_sets<T>(rule, scores, limits, first_image, sets);
      [[fallthrough]];
    default:
      sets_by_probability<T>(rule, scores, limits, sets);
  }
}

template <class T>
void copy_probabilities(const at::Tensor& scores, ProbabilityKind kind, at::Tensor& probabilities) {
  const int64_t classes = scores.size(1);
  for_each_score_row<T>(scores, kind, [&] {
    return [=, to = probabilities.mutable_data_ptr<T>()](int64_t i, const T*, const T* p) {
      std::copy_n(p, classes, to + i * classes);
    };
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
  return sets;
}

std::vector<float> smallest_probabilities(const CalibratedRule& rule) {
  return smallest_of<float>(rule, ClassLimits(rule));
}

at::Tensor probabilities_of(const at::Tensor& scores, ProbabilityKind kind) {
  check_score_layout("scores", scores);
  const at::Tensor rows = scores.detach().cpu().contiguous();
  at::Tensor probabilities = at::empty_like(rows);
  const auto copy = rows.scalar_type() == at::kDouble ? copy_probabilities<double> : copy_probabilities<float>;
  copy(rows, kind, probabilities);
  return probabilities;
}

}  // namespace settrain
