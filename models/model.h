// What a classifier is to the rest of the program.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/model_output.h"

namespace settrain {

/// Base of every model. Parameter and buffer names are torchvision's.
class Model : public torch::nn::Module {
 public:
  /// `images`: [batch, channels, height, width] float, normalised.
  virtual ModelOutput forward(const at::Tensor& images) = 0;

  int64_t num_parameters() const {
    int64_t number = 0;
    for (const at::Tensor& parameter : parameters()) number += parameter.numel();
    return number;
  }
};

}  // namespace settrain
