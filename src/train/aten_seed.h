// ATen's own generator, tied to the run's seed.
#pragma once

#include <cstdint>

namespace settrain {

/// What ATen's generator is about to be used for.
enum SeedUse : uint32_t { kSeedOfInitialWeights = 0, kSeedOfStep = 1 };

/// Seeds ATen's generators as a function of (seed, use, step, micro-batch of the step).
void seed_aten(uint64_t seed, SeedUse use, int64_t step = 0, int64_t micro_batch = 0);

}  // namespace settrain
