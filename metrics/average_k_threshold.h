// The threshold of average-K classification (Garcin 2023, Algorithm 1).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace settrain {

/// The values at given places of the descending order, without a sort: for every rank the value that a descending sort
/// of all `values` would put there (rank 0: the largest). NaN counts as larger than +infinity, whatever its sign, as in
/// at::sort and at::topk; -0 and +0 are the same value, given as +0.
///
/// `values` of any shape, float32 or float64; `ranks` in [0, number of values), in any order, repeated or not.
///
/// On the CPU by radix selection: one pass counts the values by the highest 16 bits of an integer that orders as they
/// do, and one more for each further 16 bits counts those whose higher bits a wanted rank has; so two passes for
/// float32 and four for float64 where few ranks are wanted. The counts take 0.5 MiB a thread in the first pass, and in
/// later ones 0.5 MiB for each distinct beginning that a wanted rank has; at most 16 MiB in all up to 32 threads.
/// Contiguous values are not copied. On other devices at::topk selects and sorts as many values as the highest rank
/// needs.
std::vector<double> order_statistics(const at::Tensor& values, std::span<const int64_t> ranks);

/// Values that equal the threshold are returned or not.
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
/// `middle(upper, lower)` replaces the midpoint, unless it is null. Where rounding takes it out of [lower, upper], it
/// counts as no number between them.
std::vector<double> average_k_thresholds(const at::Tensor& values, std::span<const double> ks, Ties ties,
                                         double (*middle)(double upper, double lower) = nullptr);

/// Bool in the shape of `values`: whether each is on the returned side of `lambda`. Exact for float32 values too,
/// though lambda need not be one.
at::Tensor returned_classes(const at::Tensor& values, double lambda, Ties ties);

/// [lambdas, samples] int64: how many classes of every sample each lambda returns. `values` [samples, classes].
at::Tensor set_sizes(const at::Tensor& values, std::span<const double> lambdas, Ties ties);

}  // namespace settrain
