// Gradient checkpointing: activations that are computed twice instead of kept.
#pragma once

#include <ATen/core/Tensor.h>

namespace settrain {

class Layer;

/// layer.forward(x), of which only x is kept for the backward pass, or everything where x has no gradient (images). The
/// backward pass runs the forward pass again, with the same numbers from ATen's generator; the layer must outlive it.
/// Gradients are those of layer.forward(x); there are no second derivatives (std::logic_error).
at::Tensor forward_without_keeping(Layer& layer, const at::Tensor& x);

/// Lives while a backward pass runs a layer's forward pass again, in that thread.
class Recomputation {
 public:
  Recomputation();
  ~Recomputation();
  Recomputation(const Recomputation&) = delete;
  Recomputation& operator=(const Recomputation&) = delete;

  static bool is_under_way();

 private:
  bool before_;
};

}  // namespace settrain
