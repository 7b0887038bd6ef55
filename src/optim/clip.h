// Gradient clipping.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace settrain {

/// Scales all gradients by max_norm / norm where their joint Euclidean norm is above `max_norm`, and returns the norm
/// before, [] float, without waiting for the device.
at::Tensor clip_gradients(std::span<const at::Tensor> parameters, double max_norm);

}  // namespace settrain
