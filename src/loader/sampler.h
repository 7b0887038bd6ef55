// In which order an epoch goes through a split.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace settrain {

/// The positions in the split, 0 to size - 1, in the epoch's order: shuffled, a function of (seed, epoch), or as they
/// are without a seed.
std::vector<int64_t> epoch_order(int64_t size, std::optional<uint64_t> seed, int64_t epoch);

}  // namespace settrain
