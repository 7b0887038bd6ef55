// The noise of the noised losses.
#pragma once

#include <ATen/core/Tensor.h>

#include "src/core/noise.h"

namespace settrain {

/// [batch, draws, classes] float32 standard normals on `device`: normal(noise_word(...)) of src/core, a function of
/// (seed, step, key.first_position + row, class, draw) and of `draws`, the same to the last bit on the CPU and on CUDA.
/// Throws ConfigError where step or position do not fit 32 bits.
at::Tensor gaussian_noise(const NoiseKey& key, int64_t batch, int64_t draws, int64_t classes, at::Device device);

}  // namespace settrain
