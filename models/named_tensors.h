// A module's tensors by name.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace settrain {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Whether a dotted name is `part` or lies inside it: "fc" and "fc.weight" are of "fc".
bool is_part_of(std::string_view name, std::string_view part);

/// Parameters and buffers in the order of Python's state_dict(): each module's own parameters, then its buffers, then
/// its children. (LibTorch's modules list all parameters first.)
NamedTensors state_dict(const torch::nn::Module& module);

}  // namespace settrain
