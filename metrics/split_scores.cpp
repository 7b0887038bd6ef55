#include "metrics/split_scores.h"

#include <ATen/ops/tensor.h>

namespace settrain {

SplitScores samples_of(const SplitScores& split, std::span<const int64_t> samples) {
  const at::Tensor index =
      at::tensor(at::ArrayRef<int64_t>(samples.data(), samples.size()), at::kLong).to(split.labels.device());
  return {split.scores.index_select(0, index), split.labels.index_select(0, index)};
}

}  // namespace settrain
