// Weights and images by a closed formula, so that a golden file of a model holds results alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "models/named_tensors.h"

namespace settrain {

/// s(stream, j) for j = 0 .. count-1: [count] float64 in [-1, 1), from an integer hash of (stream, j). See
/// scripts/record_model_golden.py, which has the same formula.
at::Tensor closed_noise(uint32_t stream, int64_t count);

/// Fills every floating-point tensor by its name, shape and place in the list, and zeroes the others. `salt` is added
/// to the place, for other values. Returns the SHA-256 of the filled values as little-endian float32, in order.
std::string closed_fill(const NamedTensors& tensors, uint32_t salt = 0);

/// The input that goes with it: float32 [batch, channels, height, width].
at::Tensor closed_input(at::IntArrayRef shape, uint32_t salt = 0);

}  // namespace settrain
