#include <cmath>
#include <limits>

#include "losses/kernels/cpu/exponential.h"
#include "losses/kernels/softmax_kernels.h"

namespace settrain::SETTRAIN_INSTRUCTION_SET {
namespace {

constexpr int kLanesAtOnce = 4;  // so that no operation waits for the one before it
template <class T>
constexpr int64_t kBlock = int64_t{kLanesAtOnce} * kLanesOf<T>;
template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

/// The bits of a number without its sign, with 1 added to the exponent: only NaN and infinity then have the highest
/// bit.
template <class T>
SETTRAIN_ALWAYS_INLINE Lanes<Bits<T>> finiteness(Lanes<T> numbers) {
  constexpr auto kSign = static_cast<Bits<T>>(kSignBit<T>);
  constexpr Bits<T> kOne = Bits<T>{1} << (sizeof(T) == 4 ? 23 : 52);
  return (bits_as<Bits<T>>(numbers) & static_cast<Bits<T>>(~kSign)) + kOne;
}

template <class T>
struct Extremes {
  Lanes<T> most[kLanesAtOnce];
  Lanes<Bits<T>> finite[kLanesAtOnce];

  SETTRAIN_ALWAYS_INLINE explicit Extremes(T first) {
    for (auto& lanes : most) lanes = Lanes<T>(first);
    for (auto& lanes : finite) lanes = Lanes<Bits<T>>(Bits<T>{0});
  }
  SETTRAIN_ALWAYS_INLINE void add(const T* block) {
    for (int i = 0; i < kLanesAtOnce; ++i) {
      const Lanes<T> numbers = Lanes<T>::load(block + i * kLanesOf<T>);
      most[i] = larger(numbers, most[i]);
      finite[i] = finite[i] | finiteness(numbers);
    }
  }
  SETTRAIN_ALWAYS_INLINE T largest() const {
    return largest_of(larger(larger(most[0], most[1]), larger(most[2], most[3])));
  }
  SETTRAIN_ALWAYS_INLINE bool are_finite() const {
    const Bits<T> any = fold((finite[0] | finite[1]) | (finite[2] | finite[3]),
                             [](Bits<T> a, Bits<T> b) SETTRAIN_INLINE_LAMBDA { return a | b; });
    return any >> (8 * sizeof(T) - 1) == 0;
  }
};

/// Sums of fewer than 2^22 numbers in [0, 1], to 2^-63 for each, in which their order changes no bit: each number is
/// cut into multiples of 2^-31 and of 2^-62, and a double holds the sums of both without rounding (Demmel and Nguyen,
/// "Fast reproducible floating-point summation", 2013).
class ExactSum {
 public:
  SETTRAIN_ALWAYS_INLINE ExactSum() : high_(0.0), low_(0.0) {}
  SETTRAIN_ALWAYS_INLINE void add(Doubles numbers) {
    // A double next to 2^52 units and a half is rounded to whole units.
    constexpr double kHigh = 0x1.8p21, kLow = 0x1.8p-10;
    const Doubles high = (numbers + kHigh) - kHigh;
    high_ = high_ + high;
    low_ = low_ + (((numbers - high) + kLow) - kLow);
  }
  SETTRAIN_ALWAYS_INLINE ExactSum operator+(const ExactSum& other) const {
    ExactSum both;
    both.high_ = high_ + other.high_;
    both.low_ = low_ + other.low_;
    return both;
  }
  SETTRAIN_ALWAYS_INLINE double value() const { return sum_of(high_) + sum_of(low_); }

 private:
  Doubles high_, low_;
};

/// The scores behind the last whole block, filled up with `filling`.
template <class T>
SETTRAIN_ALWAYS_INLINE void fill_last(const T* rest, int64_t count, T filling, T* last) {
  for (int64_t i = 0; i < kBlock<T>; ++i) last[i] = i < count ? rest[i] : filling;
}

}  // namespace

bool softmax_row(const double* scores, int64_t classes, double* probabilities) {
  const int64_t whole = classes / kBlock<double> * kBlock<double>, rest = classes - whole;
  double last[kBlock<double>];  // the rest, filled up with a score of the row
  fill_last(scores + whole, rest, scores[0], last);

  Extremes<double> extremes(scores[0]);
  for (int64_t c = 0; c < whole; c += kBlock<double>) extremes.add(scores + c);
  extremes.add(last);
  if (!extremes.are_finite()) return false;

  const Doubles largest(extremes.largest());
  ExactSum sums[kLanesAtOnce];
  for (int64_t c = 0; c < whole; c += kBlock<double>) {
    for (int i = 0; i < kLanesAtOnce; ++i) {
      const int64_t place = c + i * kLanesOf<double>;
      __builtin_prefetch(scores + classes + place);  // the next row, most likely
      const Doubles e = exponential(Doubles::load(scores + place) - largest);
      e.store(probabilities + place);
      sums[i].add(e);
    }
  }
  for (int i = 0; i < kLanesAtOnce; ++i) {
    exponential(Doubles::load(last + i * kLanesOf<double>) - largest).store(last + i * kLanesOf<double>);
  }
  for (int64_t i = 0; i < rest; ++i) probabilities[whole + i] = last[i];
  for (int64_t i = rest; i < kBlock<double>; ++i) last[i] = 0;
  for (int i = 0; i < kLanesAtOnce; ++i) sums[i].add(Doubles::load(last + i * kLanesOf<double>));

  const double factor = 1 / ((sums[0] + sums[1]) + (sums[2] + sums[3])).value();
  for (int64_t c = 0; c < whole; c += kLanesOf<double>) {
    (Doubles::load(probabilities + c) * Doubles(factor)).store(probabilities + c);
  }
  for (int64_t c = whole; c < classes; ++c) probabilities[c] *= factor;
  return true;
}

bool softmax_set(const float* scores, int64_t classes, const float* out_below, const float* in_from, bool* set) {
  const int64_t whole = classes / kBlock<float> * kBlock<float>, rest = classes - whole;
  float last[kBlock<float>];
  fill_last(scores + whole, rest, scores[0], last);
  Extremes<float> extremes(scores[0]);
  for (int64_t c = 0; c < whole; c += kBlock<float>) extremes.add(scores + c);
  extremes.add(last);
  if (!extremes.are_finite()) return false;

  const float largest = extremes.largest();
  fill_last(scores + whole, rest, std::numeric_limits<float>::lowest(), last);
  Floats sums[kLanesAtOnce];
  for (int i = 0; i < kLanesAtOnce; ++i) sums[i] = exponential(Floats::load(last + i * kLanes) - Floats(largest));
  for (int64_t c = 0; c < whole; c += kBlock<float>) {
    for (int i = 0; i < kLanesAtOnce; ++i) {
      const int64_t place = c + i * kLanes;
      __builtin_prefetch(scores + classes + place);  // the next row, most likely
      sums[i] = sums[i] + exponential(Floats::load(scores + place) - Floats(largest));
    }
  }
  const auto log_sum = static_cast<float>(std::log(double{sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]))}));
  uint8_t unclear = 0;
  for (int64_t c = 0; c < classes; ++c) {
    const float x = (scores[c] - largest) - log_sum;
    const auto is_in = static_cast<uint8_t>(x >= in_from[c]), is_near = static_cast<uint8_t>(x >= out_below[c]);
    set[c] = is_in != 0;
    unclear |= is_in ^ is_near;
  }
  return unclear == 0;
}

}  // namespace settrain::SETTRAIN_INSTRUCTION_SET
