// The loops behind gaussian_noise() and noised_hinge(). Raw pointers and no LibTorch, for files that must not see it.
#pragma once

#include <cstdint>

#include "losses/kernels/instruction_set.h"
#include "src/core/noise.h"

struct CUstream_st;

namespace settrain {

/// Writes the [draws, classes] normals of one sample.
SETTRAIN_IN_EVERY_SET(void fill_noise_row(const NoiseCounter& counter, int64_t draws, int64_t classes, float* row))

/// Writes the [batch, draws, classes] normals of samples from `first` on, in CUDA memory, on `stream`; a `step` in
/// CUDA memory, unless null, counts instead of first.step. Throws Error where CUDA refuses. Only in builds with CUDA.
void launch_noise(const NoiseCounter& first, const int64_t* step, int64_t batch, int64_t draws, int64_t classes,
                  float* out, CUstream_st* stream);

/// Whether this build has machine code for the current CUDA device, or code that its driver can compile: a build for
/// newer devices has neither. Throws Error where CUDA fails for another reason. Only in builds with CUDA.
bool has_code_here();

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
  const int64_t* step;  // on CUDA: where not null, it counts instead of first.step
  bool prune;           // leave out classes that cannot come to rank k + 1; changes no bit
};

/// Bytes of memory that noised_hinge_rows() needs to work in.
SETTRAIN_IN_EVERY_SET(int64_t noised_hinge_scratch(const NoisedHinge& hinge))

/// Writes losses [batch] and chosen [batch, draws], the class of rank k + 1 in each draw, of the rows [begin, end):
/// perturbed scores are fma(epsilon, z, s), ties go to the lower class, draws are summed in order. A row with a NaN has
/// the loss NaN, and its `chosen` are any classes. `drawn_classes` [batch], unless null: for how many classes a draw
/// made normals, on average.
SETTRAIN_IN_EVERY_SET(void noised_hinge_rows(const NoisedHinge& hinge, int64_t begin, int64_t end, void* scratch,
                                             float* losses, int32_t* chosen, float* drawn_classes))

/// The same for the whole batch on CUDA; a label out of range makes the row's loss NaN. Asynchronous, on `stream`.
/// Throws Error where CUDA refuses. Only in builds with CUDA.
void launch_noised_hinge(const NoisedHinge& hinge, float* losses, int32_t* chosen, CUstream_st* stream);

/// Writes gradient [batch, classes] on CUDA, likewise: row i is outer[i] * factor * (the share of the draws in which a
/// class is chosen, minus 1 at the label) where losses[i] > 0, NaN where that is NaN, else 0.
void launch_noised_hinge_gradient(const NoisedHinge& hinge, const float* losses, const int32_t* chosen,
                                  const float* outer, float* gradient, CUstream_st* stream);

}  // namespace settrain
