#include "models/recompute.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <stdexcept>

#include "models/autocast.h"
#include "models/generator_state.h"
#include "models/layers.h"

namespace settrain {
namespace {

thread_local bool under_way = false;

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Recompute : torch::autograd::Function<Recompute> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, Layer* layer) {
    context->save_for_backward({x});
    context->saved_data["layer"] = reinterpret_cast<int64_t>(layer);
    context->saved_data["autocast"] = Autocast::is_on(x.device().type());
    context->saved_data["generator"] = generator_state(x.device());
    return layer->forward(x);  // no graph is kept here
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (c10::GradMode::is_enabled()) throw std::logic_error("no second derivatives through recomputed activations");
    auto* layer = reinterpret_cast<Layer*>(context->saved_data["layer"].toInt());
    const at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_(true);
    // Not from x.grad(), where it would lie as x does, which may be another layout, and another order of later sums.
    at::Tensor gradient, y;
    x.register_hook([&gradient](const at::Tensor& computed) { gradient = computed; });
    {
      const c10::AutoGradMode with_graph(true);
      const Autocast as_before(x.device().type(), context->saved_data["autocast"].toBool());
      const Recomputation recomputation;
      const GeneratorSetBack same_numbers(x.device(), context->saved_data["generator"].toTensor());
      y = layer->forward(x);
    }
    torch::autograd::backward({y}, {gradients[0]});  // the parameters' gradients are added where they lie
    return {gradient, at::Tensor()};
  }
};

}  // namespace

at::Tensor forward_without_keeping(Layer& layer, const at::Tensor& x) {
  // Of an x without gradient, autograd would not see that the layer's own parameters have one.
  return x.requires_grad() ? Recompute::apply(x, &layer) : layer.forward(x);
}

Recomputation::Recomputation() : before_(under_way) {
  under_way = true;
}

Recomputation::~Recomputation() {
  under_way = before_;
}

bool Recomputation::is_under_way() {
  return under_way;
}

}  // namespace settrain
