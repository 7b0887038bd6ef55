#include "losses/ops/score_ops.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/sort.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace settrain {
namespace {

/// Descending order, ties by index.
template <class T>
struct ComesBefore {
  const T* values;
  bool operator()(int64_t a, int64_t b) const {
    const bool a_is_nan = std::isnan(values[a]), b_is_nan = std::isnan(values[b]);
    if (a_is_nan || b_is_nan) return a_is_nan && (!b_is_nan || a < b);
    return values[a] > values[b] || (values[a] == values[b] && a < b);
  }
};

/// Keeps the best rank + 1 elements in `heap`, the last of them in front. Few elements beat it, so a row costs little
/// more than one pass.
template <class T>
int64_t rank_index_of_row(const T* values, int64_t classes, int64_t rank, std::vector<int64_t>& heap) {
  const ComesBefore<T> comes_before{values};
  heap.resize(rank + 1);
  for (int64_t i = 0; i <= rank; ++i) heap[i] = i;
  std::make_heap(heap.begin(), heap.end(), comes_before);
  for (int64_t i = rank + 1; i < classes; ++i) {
    if (values[i] <= values[heap.front()] || !comes_before(i, heap.front())) continue;
    std::pop_heap(heap.begin(), heap.end(), comes_before);
    heap.back() = i;
    std::push_heap(heap.begin(), heap.end(), comes_before);
  }
  return heap.front();
}

template <class T>
at::Tensor rank_index_on_cpu(const at::Tensor& values, int64_t rank) {
  const int64_t classes = values.size(-1);
  const at::Tensor contiguous = values.contiguous();
  at::Tensor index = at::empty(values.sizes().slice(0, values.dim() - 1), at::kLong);
  const T* in = contiguous.const_data_ptr<T>();
  int64_t* out = index.data_ptr<int64_t>();
  at::parallel_for(0, index.numel(), std::max<int64_t>(1, 32768 / classes), [&](int64_t begin, int64_t end) {
    std::vector<int64_t> heap;
    for (int64_t row = begin; row < end; ++row) {
      out[row] = rank_index_of_row(in + row * classes, classes, rank, heap);
    }
  });
  return index;
}

}  // namespace

at::Tensor of_label(const at::Tensor& scores, const at::Tensor& labels) {
  return scores.gather(1, labels.unsqueeze(1)).squeeze(1);
}

at::Tensor without_label(const at::Tensor& scores, const at::Tensor& labels) {
  return scores.scatter(1, labels.unsqueeze(1), -std::numeric_limits<double>::infinity());
}

at::Tensor nan_where_any(const at::Tensor& values, const at::Tensor& scores) {
  const at::Tensor is_nan = scores.detach().amax(1).isnan();
  return values.masked_fill(is_nan, std::numeric_limits<double>::quiet_NaN());
}

at::Tensor rank_index(const at::Tensor& values, int64_t rank) {
  const c10::NoGradGuard no_grad;
  if (values.is_cpu()) {
    return values.scalar_type() == at::kDouble ? rank_index_on_cpu<double>(values, rank)
                                               : rank_index_on_cpu<float>(values, rank);
  }
  return std::get<1>(at::sort(values, /*stable=*/true, /*dim=*/-1, /*descending=*/true)).select(-1, rank);
}

at::Tensor ranked(const at::Tensor& scores, int64_t rank) {
  return nan_where_any(of_label(scores, rank_index(scores.detach(), rank - 1)), scores);
}

UnitSpread unit_spread(const at::Tensor& scores) {
  constexpr double kLeast = 1e-12;  // where all scores are equal
  constexpr double kMasked = -std::numeric_limits<double>::infinity();
  const at::Tensor rows = scores.contiguous();
  if (rows.is_cpu()) {  // on CUDA the question would stall every step
    const at::Tensor spread = rows.std(/*dim=*/1, /*correction=*/0, /*keepdim=*/true).clamp_min(kLeast);
    if (at::isfinite(spread).all().item<bool>())
      return {rows.sub(rows.mean(1, /*keepdim=*/true)).div(spread), spread.squeeze(1)};
  }
  const at::Tensor is_masked = rows.detach().eq(kMasked);
  const at::Tensor size = is_masked.logical_not().sum(1, /*keepdim=*/true);
  const at::Tensor mean = rows.masked_fill(is_masked, 0).sum(1, /*keepdim=*/true) / size;
  const at::Tensor centred = rows.sub(mean).masked_fill(is_masked, 0);
  const at::Tensor spread = (centred.square().sum(1, /*keepdim=*/true) / size).clamp_min(kLeast * kLeast).sqrt();
  return {centred.div(spread).masked_fill(is_masked, kMasked), spread.squeeze(1)};
}

}  // namespace settrain
