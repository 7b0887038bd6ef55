// Crops drawn at random, as torchvision draws them.
#pragma once

#include <cstdint>

#include "src/loader/view.h"

namespace settrain {

/// The random words of one sample in one epoch, which may take it more than once.
struct AugmentationKey {
  uint64_t seed = 0;
  int64_t epoch = 0, sample_id = 0, repetition = 0;
};

/// `view` with a crop of height x width drawn uniformly from the places within what is scaled. Throws
/// std::invalid_argument where that is smaller.
View random_crop(View view, int64_t height, int64_t width, const AugmentationKey& key);

/// `view` with its crop shifted uniformly by up to `most` pixels each way: a random crop with padding `most`.
View random_shift(View view, int64_t most, const AugmentationKey& key);

/// A part of the image, scaled to height x width: as torchvision's RandomResizedCrop, its share of the image's area is
/// drawn from [0.08, 1] and the logarithm of its width over its height from that of [3/4, 4/3]; where ten draws do not
/// fit, the largest central part within these proportions.
View random_resized_crop(int64_t image_height, int64_t image_width, int64_t height, int64_t width,
                         const AugmentationKey& key);

/// True with probability one half.
bool random_flip(const AugmentationKey& key);

}  // namespace settrain
