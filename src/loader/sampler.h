// Which images of a split an epoch takes, and in which order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/loader/class_draws.h"

namespace settrain {

/// One image of an epoch.
struct Draw {
  int64_t position = 0;    // in the split
  int64_t repetition = 0;  // how often the epoch took it before

  bool operator==(const Draw&) const = default;
};

/// As many draws as the split has images, a function of (seed, epoch). `labels` [images] their classes. The uniform
/// sampler takes every image once, shuffled; any does so without a seed, in the split's own order. The others draw a
/// class for every place of the order, by class_probabilities(), and of it the next image in a random order of the
/// class; no image of a class comes again before all others have come, and then in another order.
std::vector<Draw> epoch_order(const std::vector<int64_t>& labels, std::optional<uint64_t> seed, int64_t epoch,
                              const Sampling& sampling = {});

}  // namespace settrain
