#include "metrics/label_rank.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "metrics/count.h"

namespace settrain {
namespace {

constexpr int64_t kScoresPerBlock = int64_t{1} << 22;

template <class T>
void rank_on_cpu(const at::Tensor& scores, const int64_t* labels, int64_t* ranks) {
  const int64_t classes = scores.size(1), row_stride = scores.stride(0);
  const T* first_row = scores.const_data_ptr<T>();
  at::parallel_for(0, scores.size(0), rows_per_task(classes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* row = first_row + i * row_stride;
      const int64_t label = labels[i], next = label + 1;
      ranks[i] = count_at_least(row, label, row[label]) + count_above(row + next, classes - next, row[label]);
    }
  });
}

/// Through blocks of rows, so that the memory on top stays small.
void rank_on_device(const at::Tensor& scores, const at::Tensor& labels, at::Tensor& ranks) {
  const int64_t samples = scores.size(0), classes = scores.size(1);
  const int64_t block = std::max<int64_t>(1, kScoresPerBlock / classes);
  const at::Tensor class_index = at::arange(classes, labels.options());
  for (int64_t first = 0; first < samples; first += block) {
    const int64_t rows = std::min(block, samples - first);
    const at::Tensor block_scores = scores.narrow(0, first, rows);
    const at::Tensor label = labels.narrow(0, first, rows).unsqueeze(1);
    const at::Tensor label_score = block_scores.gather(1, label);
    const at::Tensor ahead = block_scores.eq(label_score).logical_and_(class_index.lt(label));
    ranks.narrow(0, first, rows).copy_(ahead.logical_or_(block_scores.gt(label_score)).sum(1));
  }
}

}  // namespace

at::Tensor label_ranks(const at::Tensor& scores, const at::Tensor& labels) {
  at::Tensor ranks = at::empty(labels.sizes(), labels.options());
  if (!scores.is_cpu()) {
    rank_on_device(scores, labels, ranks);
    return ranks;
  }
  const at::Tensor rows = scores.stride(1) == 1 ? scores : scores.contiguous();
  const at::Tensor row_labels = labels.contiguous();
  const auto rank = scores.scalar_type() == at::kDouble ? rank_on_cpu<double> : rank_on_cpu<float>;
  rank(rows, row_labels.const_data_ptr<int64_t>(), ranks.data_ptr<int64_t>());
  return ranks;
}

}  // namespace settrain
