#include "src/loader/random_crop.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "src/core/streams.h"

namespace settrain {
namespace {

// Block 0: word 0 a row, word 1 a column, word 2 the flip. Blocks 1 to 10: area and proportions of a resized crop, one
// attempt each.
std::array<uint32_t, 4> words(const AugmentationKey& key, uint32_t block) {
  return random_words(key.seed, Stream::kAugmentation, static_cast<uint32_t>(key.sample_id), block,
                      static_cast<uint32_t>(key.repetition), static_cast<uint32_t>(key.epoch));
}

int64_t rounded(double value) {
  return static_cast<int64_t>(std::nearbyint(value));  // halves to the even number, as Python
}

View scaled_part(const Box& source, int64_t height, int64_t width) {
  return {source, height, width, {0, 0, height, width}};
}

}  // namespace

View random_crop(View view, int64_t height, int64_t width, const AugmentationKey& key) {
  if (view.height < height || view.width < width) throw std::invalid_argument("random_crop: larger than the image");
  const auto random = words(key, 0);
  view.crop = {uniform_below(random[0], static_cast<uint32_t>(view.height - height + 1)),
               uniform_below(random[1], static_cast<uint32_t>(view.width - width + 1)), height, width};
  return view;
}

View random_shift(View view, int64_t most, const AugmentationKey& key) {
  const auto random = words(key, 0);
  const auto places = static_cast<uint32_t>(2 * most + 1);
  view.crop.top += uniform_below(random[0], places) - most;
  view.crop.left += uniform_below(random[1], places) - most;
  return view;
}

View random_resized_crop(int64_t image_height, int64_t image_width, int64_t height, int64_t width,
                         const AugmentationKey& key) {
  constexpr double kLeastArea = 0.08, kLeastRatio = 3.0 / 4, kMostRatio = 4.0 / 3;
  constexpr uint32_t kAttempts = 10;
  const auto area = static_cast<double>(image_height * image_width);
  for (uint32_t attempt = 1; attempt <= kAttempts; ++attempt) {
    const auto random = words(key, attempt);
    const double part = area * (kLeastArea + (1 - kLeastArea) * unit_double(random[0], random[1]));
    const double log_least = std::log(kLeastRatio), log_most = std::log(kMostRatio);
    const double ratio = std::exp(log_least + (log_most - log_least) * unit_double(random[2], random[3]));
    const int64_t w = rounded(std::sqrt(part * ratio)), h = rounded(std::sqrt(part / ratio));
    if (w < 1 || h < 1 || w > image_width || h > image_height) continue;
    const View placed = random_crop(whole_view(image_height, image_width), h, w, key);
    return scaled_part(placed.crop, height, width);
  }
  const double ratio = static_cast<double>(image_width) / static_cast<double>(image_height);
  int64_t w = image_width, h = image_height;
  if (ratio < kLeastRatio) h = std::max<int64_t>(1, rounded(static_cast<double>(w) / kLeastRatio));
  if (ratio > kMostRatio) w = std::max<int64_t>(1, rounded(static_cast<double>(h) * kMostRatio));
  return scaled_part({(image_height - h) / 2, (image_width - w) / 2, h, w}, height, width);
}

bool random_flip(const AugmentationKey& key) {
  return uniform_below(words(key, 0)[2], 2) == 1;
}

}  // namespace settrain
