// Scores row by row, with their probabilities in float64, and the classes of a row by descending score.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/sigmoid.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "losses/kernels/softmax_kernels.h"
#include "metrics/count.h"
#include "metrics/sets/rules/calibrated_rule.h"
#include "metrics/split_scores.h"

namespace settrain {

/// The sum of value(i) for i in [0, count), by several running sums, so that none waits for the one before it. The
/// rounding errors are summed too, so that the order of the values hardly ever changes the last bit.
template <class Value>
double sum_of(int64_t count, const Value& value) {
  constexpr int64_t kAtOnce = 8;
  double sums[kAtOnce]{}, lost[kAtOnce]{};
  const auto add = [](double number, double& sum, double& lost_of_sum) {
    const double next = sum + number, added = next - sum;
    lost_of_sum += (sum - (next - added)) + (number - added);
    sum = next;
  };
  const int64_t whole = count / kAtOnce * kAtOnce;
  for (int64_t i = 0; i < whole; i += kAtOnce) {
    for (int64_t j = 0; j < kAtOnce; ++j) add(value(i + j), sums[j], lost[j]);
  }
  for (int64_t i = whole; i < count; ++i) add(value(i), sums[0], lost[0]);
  for (int64_t j = 1; j < kAtOnce; ++j) {
    add(sums[j], sums[0], lost[0]);
    lost[0] += lost[j];
  }
  return sums[0] + lost[0];
}

/// Near the least exponent of a double that is not 0, about -708.
inline constexpr double kLeastExponent = -600;

/// Probabilities below it are those of tail_exponential(). It is above exp(kLeastExponent), so that both agree there
/// but for rounding.
inline constexpr double kTailProbability = 1e-259;

/// A sum of probabilities that is at least this large does not change by those of the tail.
inline constexpr double kSumWithoutTail = 1e-230;

/// Sums of probabilities that differ by a smaller share than this may be equal but for rounding.
inline constexpr double kRoundingShare = 1e-12;

/// exp(x) for x <= 0, and not 0 for differences of float32 scores: below kLeastExponent it falls only as 1 / |x| does.
/// So probabilities keep the order of their logarithms, also between images. Several of the tail must not be added up:
/// their sum would be as large as a single one that is far more probable than all of them (see summed_probability()).
inline double tail_exponential(double x) {
  return std::exp(std::max(x, kLeastExponent)) * (kLeastExponent / std::min(x, kLeastExponent));
}

/// The sum of the probabilities p(i) for i in [0, count). Probabilities of the tail do not count beside others. Where
/// there are no others it is the largest of them: its logarithm is that of the true sum but for log(count) in 600 or
/// more.
template <class P>
double summed_probability(int64_t count, const P& p) {
  if (const double all = sum_of(count, p); all >= kSumWithoutTail) return all;
  double sum = 0, largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double probability = p(i);
    sum += probability >= kTailProbability ? probability : 0;
    largest = std::max(largest, probability);
  }
  return sum > 0 ? sum : largest;
}

/// p factor, which keeps the order of logarithms as tail_exponential() does. `factor` > 0.
inline double scaled_probability(double p, double factor) {
  const double product = p * factor;
  if (p >= kTailProbability && product >= kTailProbability) return product;
  static const double kLeastPower = std::exp(kLeastExponent);
  const double log_p = p < kLeastPower ? kLeastExponent * (kLeastPower / p) : std::log(p);
  return tail_exponential(std::min(0.0, log_p + std::log(factor)));
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
    return summed_probability(classes, [this, c](int64_t i) { return i == c ? 0 : p[i]; });
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
  if (smallest_of(p, classes) >= kTailProbability) return;
  const int64_t largest = std::max_element(scores, scores + classes) - scores;
  const bool is_softmax = kind == ProbabilityKind::kSoftmax;
  const double log_largest = std::log(p[largest]);
  for (int64_t c = 0; c < classes; ++c) {
    if (p[c] >= kTailProbability) continue;
    p[c] = tail_exponential(is_softmax ? scores[c] - scores[largest] + log_largest : scores[c]);
  }
}

/// Makes the ScoreRow of any image. `scores` [rows, classes] T on the CPU, contiguous. Used by one thread.
template <class T>
class ScoreRowReader {
 public:
  ScoreRowReader(const at::Tensor& scores, ProbabilityKind kind)
      : scores_(scores), kind_(kind), exact_(static_cast<size_t>(scores.size(1))), probabilities_(exact_.size()) {}

  /// A row's probabilities are the same bits whatever the rows beside it. The row lives until the next call. Throws
  /// what check_finite() throws where a softmax' scores are not finite.
  ScoreRow<T> operator()(int64_t image) {
    const int64_t classes = scores_.size(1);
    const T* row = scores_.const_data_ptr<T>() + image * classes;
    std::copy_n(row, classes, exact_.data());
    if (kind_ == ProbabilityKind::kSigmoid) {
      // ATen computes the last elements of a tensor by other instructions: of one row these are always the same.
      const at::Tensor p = at::sigmoid(scores_.select(0, image).to(at::kDouble));
      std::copy_n(p.const_data_ptr<double>(), classes, probabilities_.data());
    } else {
      if (!softmax_(exact_.data(), classes, probabilities_.data())) check_finite("scores", scores_);
    }
    extend_tail(exact_.data(), classes, kind_, probabilities_.data());
    return {image, classes, kind_, row, exact_.data(), probabilities_.data()};
  }

 private:
  const at::Tensor& scores_;
  ProbabilityKind kind_;
  bool (*softmax_)(const double*, int64_t, double*) = SETTRAIN_PICK(instruction_set(), softmax_row);
  std::vector<double> exact_, probabilities_;  // [classes]
};

/// Calls `use(read, image)` for every image, with the ScoreRowReader of a thread. `make_use()` makes the `use` of a
/// thread. Throws what check_finite() throws, after some of the rows.
template <class T, class MakeUse>
void for_each_image(const at::Tensor& scores, ProbabilityKind kind, const MakeUse& make_use) {
  constexpr int64_t kRowsOfThread = 64;
  if (kind == ProbabilityKind::kSigmoid) check_finite("scores", scores);
  at::parallel_for(0, scores.size(0), kRowsOfThread, [&](int64_t begin, int64_t end) {
    const at::NoGradGuard no_grad;
    auto use = make_use();
    ScoreRowReader<T> read(scores, kind);
    for (int64_t i = begin; i < end; ++i) use(read, i);
  });
}

/// Calls `use(row)` with the ScoreRow of every image, as for_each_image().
template <class T, class MakeUse>
void for_each_score_row(const at::Tensor& scores, ProbabilityKind kind, const MakeUse& make_use) {
  for_each_image<T>(scores, kind, [&] {
    return [use = make_use()](ScoreRowReader<T>& read, int64_t image) mutable { use(read(image)); };
  });
}

/// Sorts a few hundred numbers several times as fast as std::sort: `keys` by the bits from kFirstBit up to kEndBit,
/// ascending; keys that agree in these stay in their order. `scratch` grows to the number of keys.
template <int kFirstBit, int kEndBit, class Key>
void radix_sort(std::span<Key> keys, std::vector<Key>& scratch) {
  constexpr int kDigitBits = 11, kPasses = (kEndBit - kFirstBit + kDigitBits - 1) / kDigitBits;
  constexpr size_t kDigits = size_t{1} << kDigitBits;
  if (scratch.size() < keys.size()) scratch.resize(keys.size());
  const auto digit = [](Key key, int pass) {
    return static_cast<size_t>(key >> (kFirstBit + pass * kDigitBits)) & (kDigits - 1);
  };
  std::array<std::array<uint32_t, kDigits>, kPasses> starts{};
  for (const Key key : keys) {
    for (int pass = 0; pass < kPasses; ++pass) ++starts[static_cast<size_t>(pass)][digit(key, pass)];
  }
  std::span<Key> from = keys, to(scratch.data(), keys.size());
  for (int pass = 0; pass < kPasses; ++pass) {
    auto& start = starts[static_cast<size_t>(pass)];
    uint32_t sum = 0;
    for (uint32_t& count : start) {
      const uint32_t next = sum + count;
      count = sum;
      sum = next;
    }
    for (const Key key : from) to[start[digit(key, pass)]++] = key;
    std::swap(from, to);
  }
  if (from.data() != keys.data()) std::copy(from.begin(), from.end(), keys.begin());
}

/// The classes of an image from the largest score to the smallest, sorted only as far as it is read, some classes at a
/// time: those between two bounds, which counting finds. Ties go to
/// the lower class; -0 and +0 tie. T: float or double; values are finite.
template <class T>
class DescendingRow {
 public:
  /// For rows of so many classes.
  explicit DescendingRow(int64_t classes) : classes_(classes), keys_(static_cast<size_t>(classes) + 1) {}

  /// Goes to another row, which must stay where it is.
  void start(const T* row) {
    row_ = row;
    sorted_ = 0;
    bound_ = std::numeric_limits<T>::infinity();
  }

  /// The class at `rank`, from 0, below the number of classes.
  int64_t at(int64_t rank) {
    while (rank >= sorted_) sort_more();
    return static_cast<int64_t>(static_cast<uint32_t>(keys_[static_cast<size_t>(rank)]));
  }

  /// How many ranks have been sorted.
  int64_t sorted() const { return sorted_; }

  /// All values >= it have been sorted, and no others.
  T bound() const { return bound_; }

 private:
  // The value's bits, which order as descending values do, and behind them the class.
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  using Key = std::conditional_t<sizeof(T) == 4, uint64_t, unsigned __int128>;

  Key key(int64_t category) const {
    const Bits bits = std::bit_cast<Bits>(row_[category] + T{0});
    constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
    return Key{bits & kSign ? bits : ~bits & ~kSign} << 32 | static_cast<uint32_t>(category);
  }

  /// Adds the classes with values from `bound` up to the last bound.
  void sort_down_to(T bound) {
    int64_t end = sorted_;
    for (int64_t c = 0; c < classes_; ++c) {
      keys_[static_cast<size_t>(end)] = static_cast<Key>(c);
      end += static_cast<int64_t>(row_[c] >= bound) & static_cast<int64_t>(row_[c] < bound_);
    }
    const auto first = keys_.begin() + sorted_, last = keys_.begin() + end;
    for (auto it = first; it != last; ++it) *it = key(static_cast<int64_t>(*it));
    constexpr int64_t kMany = 192;
    if (end - sorted_ < kMany) {
      std::sort(first, last);
    } else {
      radix_sort<32, 32 + 8 * sizeof(T)>(std::span<Key>(first, last), scratch_);  // classes come in their order
    }
    sorted_ = end;
    bound_ = bound;
  }

  /// A bound that at least `wanted` values reach, and where values allow it not more than twice as many.
  T bound_for(int64_t wanted) const {
    constexpr int kHalvings = 12;
    constexpr int64_t kSample = 64;
    T low = row_[0], high = low;
    for (int64_t c = 0; c < classes_; c += std::max<int64_t>(1, classes_ / kSample)) {
      low = std::min(low, row_[c]);
      high = std::max(high, row_[c]);
    }
    if (count_at_least(row_, classes_, low) < wanted) return std::numeric_limits<T>::lowest();
    for (int i = 0; i < kHalvings; ++i) {
      const T middle = low / 2 + high / 2;
      const int64_t count = count_at_least(row_, classes_, middle);
      (count < wanted ? high : low) = middle;
      if (count >= wanted && count <= 2 * wanted) break;
    }
    return low;
  }

  void sort_more() {
    constexpr int64_t kFirst = 32;
    const int64_t wanted = std::max(kFirst, 4 * sorted_);
    sort_down_to(2 * wanted < classes_ ? bound_for(wanted) : std::numeric_limits<T>::lowest());
  }

  int64_t classes_;
  const T* row_ = nullptr;
  std::vector<Key> keys_;  // [classes + 1]: of the first `sorted_` ranks; one more for what is not taken
  std::vector<Key> scratch_;
  int64_t sorted_ = 0;
  T bound_ = 0;
};

/// The classes of an image from the largest score to the smallest, ties to the lower class, with the probability behind
/// each: the sum over the classes of higher ranks, as summed_probability() has it. Sums of positive numbers, from the
/// small ones up: each has its digits, where 1 minus the sum of the first classes would lose them. Sorted only as far
/// as it is read.
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

  struct Entry {
    int64_t category;
    double p;
    double behind;  // the summed probabilities of the classes of higher ranks; exactly 0 behind the last
  };
  /// The class at `rank`, from 0, with what is known of it.
  Entry entry(int64_t rank) {
    const int64_t category = order_.at(rank);
    if (rank >= summed_) sum_more();
    return {category, row_.p[category], behind_[static_cast<size_t>(rank)]};
  }

 private:
  void sum_more() {
    const int64_t sorted = order_.sorted();
    const double bound = order_.bound();
    const auto unsorted = [=, scores = row_.exact, p = row_.p](int64_t c) { return scores[c] < bound ? p[c] : 0; };
    double behind = sorted == row_.classes ? 0 : summed_probability(row_.classes, unsorted);
    for (int64_t rank = sorted - 1; rank >= summed_; --rank) {
      behind_[static_cast<size_t>(rank)] = behind;
      const double next = p(rank);
      behind = next < kTailProbability ? next : behind < kTailProbability ? next : behind + next;
    }
    summed_ = sorted;
  }

  ScoreRow<T> row_;
  DescendingRow<T> order_;
  std::vector<double> behind_;  // [classes] of the first `summed_` ranks
  int64_t summed_ = 0;
};

}  // namespace settrain
