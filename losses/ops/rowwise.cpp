#include "losses/ops/rowwise.h"

#include <ATen/ops/cat.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <vector>

#include "losses/ops/with_gradient.h"

namespace settrain {

at::Tensor rowwise(const at::Tensor& scores, int64_t doubles_per_row,
                   const std::function<at::Tensor(const at::Tensor&, int64_t)>& f) {
  constexpr int64_t kDoublesAtOnce = 1 << 23;  // 64 MiB
  const int64_t rows = std::max<int64_t>(1, kDoublesAtOnce / std::max<int64_t>(1, doubles_per_row));
  const bool differentiate = wants_gradient(scores);
  std::vector<at::Tensor> values, gradients;
  for (int64_t first = 0; first < scores.size(0); first += rows) {
    const int64_t end = std::min(first + rows, scores.size(0));
    const at::Tensor chunk = scores.detach().slice(0, first, end).to(at::kDouble).clone().requires_grad_(differentiate);
    const at::Tensor value = f(chunk, first);
    values.push_back(value.detach());
    if (differentiate) gradients.push_back(torch::autograd::grad({value.sum()}, {chunk})[0]);
  }
  const at::Tensor all = at::cat(values).to(scores.scalar_type());
  return differentiate ? with_gradient(scores, all, at::cat(gradients).to(scores.scalar_type())) : all;
}

}  // namespace settrain
