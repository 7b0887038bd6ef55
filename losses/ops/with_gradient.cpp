#include "losses/ops/with_gradient.h"

#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "src/core/error.h"

namespace settrain {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct WithGradient : torch::autograd::Function<WithGradient> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& /*scores*/, const at::Tensor& values,
                            const at::Tensor& gradient) {
    context->save_for_backward({gradient});
    return values.clone();
  }
  static variable_list backward(AutogradContext* context, const variable_list& outer) {
    check_first_derivative();
    return {context->get_saved_variables()[0] * outer[0].unsqueeze(1), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

void check_first_derivative() {
  if (c10::GradMode::is_enabled()) throw Error("the gradient of this loss has no gradient of its own (create_graph)");
}

bool wants_gradient(const at::Tensor& scores) {
  return c10::GradMode::is_enabled() && scores.requires_grad();
}

at::Tensor with_gradient(const at::Tensor& scores, const at::Tensor& values, const at::Tensor& gradient) {
  return WithGradient::apply(scores, values, gradient);
}

}  // namespace settrain
