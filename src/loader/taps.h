// The weights of Pillow's filters, which average over all pixels where they shrink.
#pragma once

#include <cstdint>
#include <vector>

namespace settrain {

enum class Filter {
  kBilinear,
  kBicubic,  // Keys' cubic convolution with a = -1/2; some weights are negative
};

/// Weights are whole numbers of 2^-22, so that sums over 8-bit pixels are exact and stay below 2^31.
inline constexpr int kWeightBits = 22;

/// The input pixels, [first, end), of one output pixel.
struct Support {
  int64_t first, end;
};

/// The support of output pixel `x` where `in` pixels become `out`, as in Pillow.
Support support_of(Filter filter, int64_t in, int64_t out, int64_t x);

/// The input pixels and weights of the output pixels [begin, begin + count) of an axis.
class Taps {
 public:
  /// Throws std::invalid_argument unless 1 <= in, 1 <= out, and the pixels lie within [0, out).
  Taps(Filter filter, int64_t in, int64_t out, int64_t begin, int64_t count);

  int64_t size() const { return static_cast<int64_t>(first_.size()); }
  /// The first input pixel of output pixel begin + i, and their number.
  int64_t first(int64_t i) const { return first_[static_cast<size_t>(i)]; }
  int32_t count(int64_t i) const { return count_[static_cast<size_t>(i)]; }
  /// Their weights, which add up to about 2^22.
  const int32_t* weights(int64_t i) const { return weights_.data() + i * most_; }

 private:
  std::vector<int64_t> first_;
  std::vector<int32_t> count_, weights_;
  int64_t most_ = 0;
};

}  // namespace settrain
