// Scores row by row, with their probabilities in float64.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/sigmoid.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "losses/kernels/softmax_kernels.h"
#include "metrics/checks.h"
#include "metrics/sets/descending_row.h"
#include "metrics/sets/rules/calibrated_rule.h"

namespace settrain {

/// The sum of value(i) for i in [0, count), by several running sums, so that none waits for the one before it.
template <class Value>
double sum_of(int64_t count, const Value& value) {
  constexpr int64_t kAtOnce = 8;
  double sums[kAtOnce]{}, sum = 0;
  const int64_t whole = count / kAtOnce * kAtOnce;
  for (int64_t i = 0; i < whole; i += kAtOnce) {
    for (int64_t j = 0; j < kAtOnce; ++j) sums[j] += value(i + j);
  }
  for (int64_t i = whole; i < count; ++i) sum += value(i);
  for (const double part : sums) sum += part;
  return sum;
}

/// Near the least exponent of a double that is not 0, about -708.
inline constexpr double kLeastExponent = -600;

/// exp(x) for x <= 0, and not 0 for differences of float32 scores: below kLeastExponent it falls only as 1 / |x| does.
/// So it still orders the classes whose probabilities would be 0, and it is too small to change a sum with any other.
inline double tail_exponential(double x) {
  return std::exp(std::max(x, kLeastExponent)) * (kLeastExponent / std::min(x, kLeastExponent));
}

/// An image's scores and the probabilities of its classes. T: float or double.
template <class T>
struct ScoreRow {
  int64_t image = 0, classes = 0;
  ProbabilityKind kind = ProbabilityKind::kSoftmax;
  const T* scores = nullptr;      // [classes]
  const double* exact = nullptr;  // [classes] the scores
  const double* p = nullptr;      // [classes]

  /// 1 - p[c] with all its digits, however close p[c] is to 1.
  double rest(int64_t c) const {
    if (p[c] <= 0.5) return 1 - p[c];
    if (kind == ProbabilityKind::kSigmoid) return tail_exponential(-exact[c]) / (1 + tail_exponential(-exact[c]));
    const double* behind = p + c + 1;
    return sum_of(c, [this](int64_t i) { return p[i]; }) +
           sum_of(classes - c - 1, [behind](int64_t i) { return behind[i]; });
  }
};

/// The smallest of `values`, by several running ones, as sum_of().
inline double smallest_of(const double* values, int64_t count) {
  constexpr int64_t kAtOnce = 8;
  double smallest[kAtOnce];
  std::fill_n(smallest, kAtOnce, values[0]);
  const int64_t whole = count / kAtOnce * kAtOnce;
  for (int64_t i = 0; i < whole; i += kAtOnce) {
    for (int64_t j = 0; j < kAtOnce; ++j) smallest[j] = values[i + j] < smallest[j] ? values[i + j] : smallest[j];
  }
  for (int64_t i = whole; i < count; ++i) smallest[0] = std::min(smallest[0], values[i]);
  return *std::min_element(smallest, smallest + kAtOnce);
}

/// Gives probabilities that are 0, or nearly, those of tail_exponential().
inline void extend_tail(const double* scores, int64_t classes, ProbabilityKind kind, double* p) {
  constexpr double kTail = 1e-259;  // above exp(kLeastExponent)
  if (smallest_of(p, classes) >= kTail) return;
  const int64_t largest = std::max_element(scores, scores + classes) - scores;
  const bool is_softmax = kind == ProbabilityKind::kSoftmax;
  for (int64_t c = 0; c < classes; ++c) {
    if (p[c] >= kTail) continue;
    p[c] = is_softmax ? tail_exponential(scores[c] - scores[largest]) * p[largest] : tail_exponential(scores[c]);
  }
}

/// Calls `use(row)` with the ScoreRow of every image. `make_use()` makes the `use` of a thread. A row's probabilities
/// are the same bits whatever the rows beside it. `scores` [rows, classes] T on the CPU, contiguous. Throws what
/// check_finite() throws, after some of the rows.
template <class T, class MakeUse>
void for_each_score_row(const at::Tensor& scores, ProbabilityKind kind, const MakeUse& make_use) {
  constexpr int64_t kRowsOfThread = 64;
  const int64_t classes = scores.size(1);
  if (kind == ProbabilityKind::kSigmoid) check_finite("scores", scores);
  const auto softmax = SETTRAIN_PICK(instruction_set(), softmax_row<double>);
  at::parallel_for(0, scores.size(0), kRowsOfThread, [&](int64_t begin, int64_t end) {
    const at::NoGradGuard no_grad;
    auto use = make_use();
    std::vector<double> exact(static_cast<size_t>(classes)), probabilities(static_cast<size_t>(classes));
    for (int64_t i = begin; i < end; ++i) {
      const T* row = scores.const_data_ptr<T>() + i * classes;
      std::copy_n(row, classes, exact.data());
      if (kind == ProbabilityKind::kSigmoid) {
        // ATen computes the last elements of a tensor by other instructions: of one row these are always the same.
        const at::Tensor p = at::sigmoid(scores.select(0, i).to(at::kDouble));
        std::copy_n(p.const_data_ptr<double>(), classes, probabilities.data());
      } else {
        if (!softmax(exact.data(), classes, probabilities.data())) check_finite("scores", scores);
      }
      extend_tail(exact.data(), classes, kind, probabilities.data());
      use(ScoreRow<T>{i, classes, kind, row, exact.data(), probabilities.data()});
    }
  });
}

/// The classes of an image from the largest score to the smallest, ties to the lower class, with the probability behind
/// each: the sum over the classes of higher ranks. Sums of positive numbers, from the small ones up: each has its
/// digits, where 1 minus the sum of the first classes would lose them. Sorted only as far as it is read.
template <class T>
class RankedRow {
 public:
  explicit RankedRow(int64_t classes) : order_(classes), behind_(static_cast<size_t>(classes)) {}

  void start(const ScoreRow<T>& row) {
    row_ = row;
    order_.start(row.scores);
    summed_ = 0;
  }

  int64_t image() const { return row_.image; }
  /// The class at `rank`, from 0.
  int64_t at(int64_t rank) { return order_.at(rank); }
  double p(int64_t rank) { return row_.p[order_.at(rank)]; }
  double rest(int64_t rank) { return row_.rest(order_.at(rank)); }

  /// The summed probabilities of the classes behind `rank`; exactly 0 behind the last.
  double behind(int64_t rank) {
    order_.at(rank);
    if (rank >= summed_) {
      const double bound = order_.bound();
      double sum = sum_of(row_.classes,
                          [=, scores = row_.exact, p = row_.p](int64_t c) { return scores[c] < bound ? p[c] : 0; });
      for (int64_t r = order_.sorted() - 1; r >= summed_; --r) {
        behind_[static_cast<size_t>(r)] = sum;
        sum += p(r);
      }
      summed_ = order_.sorted();
    }
    return behind_[static_cast<size_t>(rank)];
  }

 private:
  ScoreRow<T> row_;
  DescendingRow<T> order_;
  std::vector<double> behind_;  // [classes] of the first `summed_` ranks
  int64_t summed_ = 0;
};

}  // namespace settrain
