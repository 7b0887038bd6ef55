#include "losses/rowwise.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

namespace settrain {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// `values` [batch], whose gradient to `scores` is `gradient` [batch, classes] times that of the value.
struct WithGradient : torch::autograd::Function<WithGradient> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& /*scores*/, const at::Tensor& values,
                            const at::Tensor& gradient) {
    context->save_for_backward({gradient});
    return values.clone();
  }
  static variable_list backward(AutogradContext* context, const variable_list& outer) {
    return {context->get_saved_variables()[0] * outer[0].unsqueeze(1), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor rowwise(const at::Tensor& scores, int64_t doubles_per_row,
                   const std::function<at::Tensor(const at::Tensor&, int64_t)>& f) {
  constexpr int64_t kDoublesAtOnce = 1 << 23;  // 64 MiB
  const int64_t rows = std::max<int64_t>(1, kDoublesAtOnce / std::max<int64_t>(1, doubles_per_row));
  const bool with_gradient = c10::GradMode::is_enabled() && scores.requires_grad();
  std::vector<at::Tensor> values, gradients;
  for (int64_t first = 0; first < scores.size(0); first += rows) {
    const int64_t end = std::min(first + rows, scores.size(0));
    const at::Tensor chunk = scores.detach().slice(0, first, end).to(at::kDouble).clone().requires_grad_(with_gradient);
    const at::Tensor value = f(chunk, first);
    values.push_back(value.detach());
    if (with_gradient) gradients.push_back(torch::autograd::grad({value.sum()}, {chunk})[0]);
  }
  const at::Tensor all = at::cat(values).to(scores.scalar_type());
  return with_gradient ? WithGradient::apply(scores, all, at::cat(gradients).to(scores.scalar_type())) : all;
}

}  // namespace settrain
