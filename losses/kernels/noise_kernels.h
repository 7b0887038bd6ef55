// The loops behind gaussian_noise(). Raw pointers and no LibTorch, for files that must not see it.
#pragma once

#include <cstdint>

#include "losses/kernels/instruction_set.h"
#include "src/core/noise.h"

struct CUstream_st;

namespace settrain {

/// Writes the [draws, classes] normals of one sample.
SETTRAIN_IN_EVERY_SET(void fill_noise_row(const NoiseCounter& counter, int64_t draws, int64_t classes, float* row))

/// Writes the [batch, draws, classes] normals of samples from `first` on, in CUDA memory, on `stream`; a `step` in
/// CUDA memory, unless null, counts instead of first.step. Throws Error
/// where CUDA refuses. Only in builds with CUDA.
void launch_noise(const NoiseCounter& first, const int64_t* step, int64_t batch, int64_t draws, int64_t classes,
                  float* out, CUstream_st* stream);

/// Whether this build has machine code for the current CUDA device, or code that its driver can compile: a build for
/// newer devices has neither. Throws Error where CUDA fails for another reason. Only in builds with CUDA.
bool has_code_here();

}  // namespace settrain
