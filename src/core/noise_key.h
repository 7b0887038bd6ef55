// What the random numbers of one training step depend on.
#pragma once

#include <cstdint>

namespace settrain {

/// The noise of a loss is a function of (seed, step, position, class, draw). Position and not sample id, since a sample
/// may repeat within a step.
struct NoiseKey {
  uint64_t seed = 0;
  int64_t step = 0;            // global optimizer step, from 0
  int64_t first_position = 0;  // of this batch's first sample within the step's global batch
  // Where set, CUDA kernels read the step there, in memory of their device, and `step` counts for nothing: a CUDA graph
  // repeats the arguments with which it was captured. Where no kernel reads it, it is copied to the host.
  const int64_t* step_on_device = nullptr;
};

}  // namespace settrain
