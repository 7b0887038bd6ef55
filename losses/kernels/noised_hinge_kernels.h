// The loops behind noised_hinge(). Raw pointers and no LibTorch, for files that must not see it.
#pragma once

#include <cstdint>

#include "src/core/noise.h"

struct CUstream_st;

namespace settrain {

/// A batch and the loss of its row i,
///
///     (factor (margin_i + t_i - s_iy))_+,   t_i = (1/draws) sum_m (s_i + epsilon z_im)_[k+1].
///
/// All pointers are to contiguous memory of one device.
struct NoisedHinge {
  const float* scores;    // [batch, classes]
  const int64_t* labels;  // [batch] in [0, classes)
  const float* margins;   // [batch], or null: `margin` for every row
  const float* noise;     // [batch, draws, classes], or null: normal(noise_word()) of first, class and draw
  float margin, factor, epsilon;
  int64_t batch, classes;
  int64_t k;            // 1 <= k < classes
  int64_t draws;        // >= 1
  NoiseCounter first;   // of row 0; row i has position first.position + i
  const int64_t* step;  // on CUDA: where not null, what counts instead of first.step
  bool prune;           // whether classes that cannot come to rank k + 1 are left out; changes no bit
};

/// Writes losses [batch] and chosen [batch, draws], the class of rank k + 1 in each draw: perturbed scores are
/// fma(epsilon, z, s), ties go to the lower class, draws are summed in order. A row with a NaN has the loss NaN, and
/// its `chosen` are any classes. Asynchronous, on `stream`. Throws Error where CUDA refuses. Only in builds with CUDA.
void launch_noised_hinge(const NoisedHinge& hinge, float* losses, int32_t* chosen, CUstream_st* stream);

/// Writes gradient [batch, classes]: row i is outer[i] * factor * ((1/draws) how often each class is chosen, minus 1 at
/// the label) where losses[i] > 0, NaN where that is NaN, else 0. Likewise.
void launch_noised_hinge_gradient(const NoisedHinge& hinge, const float* losses, const int32_t* chosen,
                                  const float* outer, float* gradient, CUstream_st* stream);

}  // namespace settrain
