// A module's tensors by name.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <string>
#include <utility>
#include <vector>

namespace settrain {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Parameters and buffers in the order of Python's state_dict(): each module's own parameters, then its buffers, then
/// its children. (LibTorch's modules list all parameters first.)
NamedTensors state_dict(const torch::nn::Module& module);

}  // namespace settrain
