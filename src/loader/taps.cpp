#include "src/loader/taps.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace settrain {
namespace {

// By how much the filter is stretched, and where it stands, in input pixels.
double stretch(int64_t in, int64_t out) {
  return std::max(static_cast<double>(in) / static_cast<double>(out), 1.0);
}

double half_width(Filter filter, int64_t in, int64_t out) {
  return (filter == Filter::kBicubic ? 2 : 1) * stretch(in, out);
}

double center_of(int64_t in, int64_t out, int64_t x) {
  return (static_cast<double>(x) + 0.5) * (static_cast<double>(in) / static_cast<double>(out));
}

double height_at(Filter filter, double distance) {
  const double x = std::abs(distance);
  if (filter == Filter::kBilinear) return std::max(0.0, 1.0 - x);
  constexpr double a = -0.5;
  if (x < 1) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

}  // namespace

Support support_of(Filter filter, int64_t in, int64_t out, int64_t x) {
  if (in == out) return {x, x + 1};
  const double center = center_of(in, out, x), support = half_width(filter, in, out);
  return {std::max<int64_t>(0, static_cast<int64_t>(center - support + 0.5)),
          std::min(in, static_cast<int64_t>(center + support + 0.5))};
}

Taps::Taps(Filter filter, int64_t in, int64_t out, int64_t begin, int64_t count) {
  if (in < 1 || out < 1 || begin < 0 || count < 0 || begin + count > out) throw std::invalid_argument("Taps: sizes");
  const double support = half_width(filter, in, out);
  most_ = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  weights_.resize(static_cast<size_t>(count * most_));
  std::vector<double> exact(static_cast<size_t>(most_));
  for (int64_t i = 0; i < count; ++i) {
    const double center = center_of(in, out, begin + i);
    const auto [first, end] = support_of(filter, in, out, begin + i);
    double sum = 0;
    for (int64_t k = first; k < end; ++k) {
      const double distance = (static_cast<double>(k) - center + 0.5) * (1.0 / stretch(in, out));
      sum += exact[static_cast<size_t>(k - first)] = height_at(filter, distance);
    }
    for (int64_t k = first; k < end; ++k) {
      const double weight = exact[static_cast<size_t>(k - first)] / sum * (1 << kWeightBits);
      weights_[static_cast<size_t>(i * most_ + k - first)] =
          static_cast<int32_t>(weight < 0 ? weight - 0.5 : weight + 0.5);
    }
    first_.push_back(first);
    count_.push_back(static_cast<int32_t>(end - first));
  }
}

}  // namespace settrain
