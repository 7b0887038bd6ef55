#include "metrics/label_rank.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>

namespace settrain {
namespace {

constexpr int64_t kScoresPerBlock = int64_t{1} << 22;

}  // namespace

at::Tensor label_ranks(const at::Tensor& scores, const at::Tensor& labels) {
  const int64_t samples = scores.size(0), classes = scores.size(1);
  const int64_t block = std::max<int64_t>(1, kScoresPerBlock / classes);
  const at::Tensor class_index = at::arange(classes, labels.options());
  at::Tensor ranks = at::empty_like(labels);
  for (int64_t first = 0; first < samples; first += block) {
    const int64_t rows = std::min(block, samples - first);
    const at::Tensor block_scores = scores.narrow(0, first, rows);
    const at::Tensor label = labels.narrow(0, first, rows).unsqueeze(1);
    const at::Tensor label_score = block_scores.gather(1, label);
    const at::Tensor ahead = block_scores.eq(label_score).logical_and_(class_index.lt(label));
    ranks.narrow(0, first, rows).copy_(ahead.logical_or_(block_scores.gt(label_score)).sum(1));
  }
  return ranks;
}

}  // namespace settrain
