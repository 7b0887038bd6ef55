// The values at given places of the descending order, without a sort.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace settrain {

/// For every rank the value that a descending sort of all `values` would put there (rank 0: the largest). NaN counts as
/// larger than +infinity, whatever its sign, as in at::sort and at::topk; -0 and +0 are the same value, given as +0.
///
/// `values` of any shape, float32 or float64; `ranks` in [0, number of values), in any order, repeated or not.
///
/// On the CPU by radix selection: one pass counts the values by the highest 16 bits of an integer that orders as they
/// do, and one more for each further 16 bits counts those whose higher bits a wanted rank has; so two passes for
/// float32 and four for float64 where few ranks are wanted. What it needs on top are the counts: 0.5 MiB a thread in
/// the first pass, then as much for each different run of higher bits, at most 16 MiB in all up to 32 threads.
/// Contiguous values are not copied. On other devices at::topk selects and sorts as many values as the highest rank
/// needs.
std::vector<double> order_statistics(const at::Tensor& values, std::span<const int64_t> ranks);

}  // namespace settrain
