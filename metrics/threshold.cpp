#include "metrics/threshold.h"

#include <ATen/ops/topk.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace settrain {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double threshold_between(double upper, double lower, Ties ties) {
  const double middle = std::midpoint(upper, lower);
  if (ties == Ties::kKeepAll) return middle > lower ? middle : upper;
  return middle < upper ? middle : lower;
}

/// The smallest number of type T that is returned: a float32 tensor compared with a float64 lambda would round lambda.
template <class T>
T smallest_returned(double lambda, Ties ties) {
  T value = static_cast<T>(lambda);
  const bool returned = ties == Ties::kKeepAll ? value >= lambda : value > lambda;
  if (!returned) value = std::nextafter(value, std::numeric_limits<T>::infinity());
  return value;
}

}  // namespace

int64_t values_in_sets(double k, int64_t samples, int64_t classes) {
  if (k >= static_cast<double>(classes)) return samples * classes;
  return std::min(static_cast<int64_t>(std::floor(k * static_cast<double>(samples) + 1e-9)), samples * classes);
}

std::vector<double> average_k_thresholds(const at::Tensor& values, std::span<const double> ks, Ties ties) {
  const int64_t samples = values.size(0), classes = values.size(1);
  int64_t largest = 0;
  for (const double k : ks) {
    const int64_t kept = values_in_sets(k, samples, classes);
    if (kept < values.numel()) largest = std::max(largest, kept);
  }
  // One selection serves every K, and only what is selected gets sorted.
  const at::Tensor ordered = std::get<0>(at::topk(values.flatten(), largest + 1)).to(at::kCPU, at::kDouble);
  const double* descending = ordered.const_data_ptr<double>();

  std::vector<double> thresholds;
  for (const double k : ks) {
    const int64_t kept = values_in_sets(k, samples, classes);
    if (kept == 0) {
      thresholds.push_back(kInfinity);
    } else if (kept == values.numel()) {
      thresholds.push_back(-kInfinity);
    } else {
      thresholds.push_back(threshold_between(descending[kept - 1], descending[kept], ties));
    }
  }
  return thresholds;
}

at::Tensor returned_classes(const at::Tensor& values, double lambda, Ties ties) {
  return values.ge(values.scalar_type() == at::kFloat ? smallest_returned<float>(lambda, ties)
                                                      : smallest_returned<double>(lambda, ties));
}

}  // namespace settrain
