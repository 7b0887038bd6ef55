// Stage, and gradient checkpointing: activations that are computed twice instead of kept.
#include <ATen/Context.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <mutex>
#include <stdexcept>
#include <utility>

#include "models/autocast.h"
#include "models/layers.h"

namespace settrain {
namespace {

thread_local bool recomputing = false;

/// The state of ATen's generator for that device.
at::Tensor generator_state(c10::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(c10::Device device, const at::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

/// While it lives, a layer's forward pass is computed again in this thread: is_recomputing() holds, and ATen's
/// generator for the device goes on from an earlier state. Then the generator goes on from where it was.
class Recomputation {
 public:
  Recomputation(c10::Device device, const at::Tensor& generator)
      : device_(device), generator_before_(generator_state(device)), before_(std::exchange(recomputing, true)) {
    set_generator_state(device, generator);
  }
  ~Recomputation() {
    set_generator_state(device_, generator_before_);
    recomputing = before_;
  }
  Recomputation(const Recomputation&) = delete;
  Recomputation& operator=(const Recomputation&) = delete;

 private:
  c10::Device device_;
  at::Tensor generator_before_;
  bool before_;
};

struct Recompute : torch::autograd::Function<Recompute> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, Layer* layer) {
    context->save_for_backward({x});
    context->saved_data["layer"] = reinterpret_cast<int64_t>(layer);
    context->saved_data["autocast"] = Autocast::is_on(x.device().type());
    context->saved_data["generator"] = generator_state(x.device());
    return layer->forward(x);  // no graph is kept here
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    if (c10::GradMode::is_enabled()) throw std::logic_error("no second derivatives through recomputed activations");
    auto* layer = reinterpret_cast<Layer*>(context->saved_data["layer"].toInt());
    const at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_(true);
    // Not from x.grad(), where it would lie as x does, which may be another layout, and another order of later sums.
    at::Tensor gradient, y;
    x.register_hook([&gradient](const at::Tensor& computed) { gradient = computed; });
    {
      const c10::AutoGradMode with_graph(true);
      const Autocast as_before(x.device().type(), context->saved_data["autocast"].toBool());
      const Recomputation recomputation(x.device(), context->saved_data["generator"].toTensor());
      y = layer->forward(x);
    }
    torch::autograd::backward({y}, {gradients[0]});  // the parameters' gradients are added where they lie
    return {gradient, at::Tensor()};
  }
};

/// layer.forward(x), of which only x is kept for the backward pass, or everything where x has no gradient (images). The
/// backward pass runs the forward pass again, with the same numbers from ATen's generator; the layer must outlive it.
/// Gradients are those of layer.forward(x); there are no second derivatives (std::logic_error).
at::Tensor forward_without_keeping(Layer& layer, const at::Tensor& x) {
  // Where x has no gradient, autograd would not see that the layer's own parameters have one.
  return x.requires_grad() ? Recompute::apply(x, &layer) : layer.forward(x);
}

}  // namespace

bool is_recomputing() {
  return recomputing;
}

void Stage::add(const std::string& name, std::shared_ptr<Layer> layer) {
  layers_.push_back(register_module(name, std::move(layer)));
}

at::Tensor Stage::forward(const at::Tensor& x) {
  // Not within a layer that is itself computed again.
  const bool recompute = recompute_ && c10::GradMode::is_enabled() && !is_recomputing();
  at::Tensor y = x;
  for (const auto& layer : layers_) y = recompute ? forward_without_keeping(*layer, y) : layer->forward(y);
  return y;
}

}  // namespace settrain
