// The part of an image that a model sees, in numbers; fixed, or drawn at random as torchvision draws it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "datasets/dataset.h"
#include "src/loader/taps.h"

namespace settrain {

/// The pixels `source` of an image are scaled to `height` x `width` by `filter`. The model sees their part `crop`,
/// which is black where it reaches beyond them. `flip` mirrors it left to right.
struct View {
  Box source;
  int64_t height = 0, width = 0;
  Box crop;
  bool flip = false;
  Filter filter = Filter::kBilinear;

  bool operator==(const View&) const = default;
};

/// The whole image of that size, unscaled.
View whole_view(int64_t height, int64_t width);

/// The whole image scaled so that its shorter side has `side` pixels and the longer one the quotient rounded down, as
/// torchvision's Resize. `crop` is all of it.
View with_short_side(int64_t height, int64_t width, int64_t side);

/// The whole image scaled so that it just covers `height` x `width`, with its proportions kept. `crop` is all of it.
View covering(int64_t image_height, int64_t image_width, int64_t height, int64_t width);

/// `view` with the central `height` x `width` of the scaled pixels, as torchvision's CenterCrop: half pixels are
/// rounded to the even number, and an image that is too small is centred on black.
View center_crop(View view, int64_t height, int64_t width);

/// The pixels of the image that `view` depends on, a part of `view.source`; at least one pixel.
Box needed_pixels(const View& view);

/// The smallest box that holds needed_pixels() of each of `views`, at least one.
Box needed_pixels(const std::vector<View>& views);

/// Selects the random words of one sample in one epoch. `repetition`: how often the epoch took the sample before.
struct AugmentationKey {
  uint64_t seed = 0;
  int64_t epoch = 0, sample_id = 0, repetition = 0;
};

/// Blocks of a key's random words.
enum AugmentationBlock : uint32_t {
  kCropBlock = 0,          // word 0 a row, word 1 a column, word 2 the flip
  kResizedCropBlock = 1,   // and one more for each further attempt: area and proportions
  kPolicyBlock = 16,       // and one more for each operation
  kRotateBlock = 64,       // word 0
  kJitterBlock = 65,       // the four amounts
  kJitterOrderBlock = 66,  // word 0
  kCutoutBlock = 67,       // words 0 and 1: the centre
  kEraseBlock = 68,        // word 0: whether; then one block for each attempt: area, proportions, row, column
};

std::array<uint32_t, 4> random_words(const AugmentationKey& key, uint32_t block);

/// `view` with a crop of height x width at a uniformly drawn place within the scaled pixels. Throws
/// std::invalid_argument where these are fewer.
View random_crop(View view, int64_t height, int64_t width, const AugmentationKey& key);

/// `view` with its crop shifted uniformly by up to `most` pixels each way: a random crop with padding `most`.
View random_shift(View view, int64_t most, const AugmentationKey& key);

/// A random part of the image, scaled to height x width, as torchvision's RandomResizedCrop: the part's share of the
/// area is uniform in [0.08, 1], and the logarithm of width / height is uniform between those of 3/4 and 4/3. Where ten
/// draws do not fit into the image, it is the largest central part within these proportions.
View random_resized_crop(int64_t image_height, int64_t image_width, int64_t height, int64_t width,
                         const AugmentationKey& key);

/// True with probability one half.
bool random_flip(const AugmentationKey& key);

}  // namespace settrain
