// The threshold of average-K classification (Garcin 2023, Algorithm 1).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace settrain {

/// What happens to values that equal the threshold.
enum class Ties {
  kKeepAll,  // returned, as Algorithm 1 has it: where values tie at the threshold, sets are larger than K on average
  kStrict,   // not returned: sets hold at most K classes on average on the samples that set the threshold (eq. 3.5)
};

/// For every K > 0 of `ks` the lambda of Algorithm 1: the midpoint of the m-th and the (m+1)-th largest of all
/// `values`, m = values_in_sets(K) of src/core. -infinity where m is all of them, +infinity where m = 0 (K < 1 /
/// samples: no sample gets a class).
///
/// Two neighbouring floating-point numbers have no number between them: there lambda is the one that keeps exactly m
/// values. `values` [samples, classes] float32 or float64; a midpoint is taken in float64.
std::vector<double> average_k_thresholds(const at::Tensor& values, std::span<const double> ks, Ties ties);

/// Of the shape of `values`, bool: the values on the returned side of `lambda`. Exact for float32 values too, which
/// lambda need not be.
at::Tensor returned_classes(const at::Tensor& values, double lambda, Ties ties);

/// [lambdas, samples] int64: how many classes of every sample each lambda returns. `values` [samples, classes].
at::Tensor set_sizes(const at::Tensor& values, std::span<const double> lambdas, Ties ties);

}  // namespace settrain
