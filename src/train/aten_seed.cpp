#include "src/train/aten_seed.h"

#include <ATen/Context.h>

#include "src/core/random.h"

namespace settrain {

void seed_aten(uint64_t seed, SeedUse use, int64_t step, int64_t micro_batch) {
  const auto words =
      random_words(seed, Stream::kAten, 0, use, static_cast<uint32_t>(micro_batch), static_cast<uint32_t>(step));
  at::manual_seed((uint64_t{words[0]} << 32) | words[1]);
}

}  // namespace settrain
