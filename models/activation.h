// Activations that stand behind convolutions and linear layers.
#pragma once

#include <ATen/core/Tensor.h>

namespace settrain {

enum class Activation { kNone, kRelu, kRelu6, kSilu, kHardSwish, kGelu };

/// May write over x. Tensors without storage stay as they are.
at::Tensor activated(at::Tensor x, Activation by);

}  // namespace settrain
