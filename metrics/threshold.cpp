#include "metrics/threshold.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "metrics/count.h"
#include "metrics/order_statistics.h"
#include "src/core/values_in_sets.h"

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

/// One pass over the values for all thresholds: a row stays in the cache.
template <class T>
void count_on_cpu(const at::Tensor& values, std::span<const double> lambdas, Ties ties, int64_t* sizes) {
  const int64_t samples = values.size(0), classes = values.size(1);
  const T* rows = values.const_data_ptr<T>();
  std::vector<T> bounds;
  for (const double lambda : lambdas) bounds.push_back(smallest_returned<T>(lambda, ties));
  at::parallel_for(0, samples, rows_per_task(classes), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (size_t i = 0; i < bounds.size(); ++i) {
        sizes[static_cast<int64_t>(i) * samples + row] = count_at_least(rows + row * classes, classes, bounds[i]);
      }
    }
  });
}

}  // namespace

std::vector<double> average_k_thresholds(const at::Tensor& values, std::span<const double> ks, Ties ties) {
  const int64_t samples = values.size(0), classes = values.size(1);
  std::vector<int64_t> kept, ranks;  // for every K; the last value kept and the next, where both exist
  for (const double k : ks) {
    kept.push_back(values_in_sets(k, samples, classes));
    if (kept.back() > 0 && kept.back() < values.numel()) ranks.insert(ranks.end(), {kept.back() - 1, kept.back()});
  }
  const std::vector<double> selected = order_statistics(values, ranks);

  std::vector<double> thresholds;
  const double* next = selected.data();
  for (const int64_t m : kept) {
    if (m == 0) {
      thresholds.push_back(kInfinity);
    } else if (m == values.numel()) {
      thresholds.push_back(-kInfinity);
    } else {
      thresholds.push_back(threshold_between(next[0], next[1], ties));
      next += 2;
    }
  }
  return thresholds;
}

at::Tensor returned_classes(const at::Tensor& values, double lambda, Ties ties) {
  return values.ge(values.scalar_type() == at::kFloat ? smallest_returned<float>(lambda, ties)
                                                      : smallest_returned<double>(lambda, ties));
}

at::Tensor set_sizes(const at::Tensor& values, std::span<const double> lambdas, Ties ties) {
  const int64_t samples = values.size(0);
  at::Tensor sizes = at::empty({static_cast<int64_t>(lambdas.size()), samples}, values.options().dtype(at::kLong));
  if (values.is_cpu()) {
    const auto count = values.scalar_type() == at::kDouble ? count_on_cpu<double> : count_on_cpu<float>;
    count(values.contiguous(), lambdas, ties, sizes.data_ptr<int64_t>());
  } else {
    for (size_t i = 0; i < lambdas.size(); ++i) {
      sizes.select(0, static_cast<int64_t>(i)).copy_(returned_classes(values, lambdas[i], ties).sum(1));
    }
  }
  return sizes;
}

}  // namespace settrain
