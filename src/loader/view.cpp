#include "src/loader/view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "src/core/random.h"

namespace settrain {
namespace {

// Where the central `size` of `all` begins.
int64_t center(int64_t all, int64_t size) {
  if (all < size) return -((size - all) / 2);
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(all - size) / 2));  // halves to the even number
}

// Pixels [begin, end) of one axis of an image.
struct Range {
  int64_t begin, end;
};

// The pixels that the visible part of [crop, crop + size) is computed from. The source starts at `source_begin`.
Range needed_range(Filter filter, int64_t source_begin, int64_t source, int64_t scaled, int64_t crop, int64_t size) {
  const int64_t first = std::clamp<int64_t>(crop, 0, scaled - 1);
  const int64_t last = std::clamp<int64_t>(crop + size - 1, first, scaled - 1);
  return {source_begin + support_of(filter, source, scaled, first).first,
          source_begin + support_of(filter, source, scaled, last).end};
}

int64_t rounded(double value) {
  return static_cast<int64_t>(std::nearbyint(value));  // halves to the even number, as Python
}

View scaled_part(const Box& source, int64_t height, int64_t width) {
  return {source, height, width, {0, 0, height, width}};
}

}  // namespace

std::array<uint32_t, 4> random_words(const AugmentationKey& key, uint32_t block) {
  return random_words(key.seed, Stream::kAugmentation, static_cast<uint32_t>(key.sample_id), block,
                      static_cast<uint32_t>(key.repetition), static_cast<uint32_t>(key.epoch));
}

View whole_view(int64_t height, int64_t width) {
  const Box all{0, 0, height, width};
  return {all, height, width, all};
}

View with_short_side(int64_t height, int64_t width, int64_t side) {
  const int64_t shorter = std::min(height, width), longer = std::max(height, width);
  const auto scaled = static_cast<int64_t>(static_cast<double>(side * longer) / static_cast<double>(shorter));
  View view = whole_view(height, width);
  view.height = height < width ? side : scaled;
  view.width = height < width ? scaled : side;
  view.crop = {0, 0, view.height, view.width};
  return view;
}

View covering(int64_t image_height, int64_t image_width, int64_t height, int64_t width) {
  const double scale = std::max(static_cast<double>(height) / static_cast<double>(image_height),
                                static_cast<double>(width) / static_cast<double>(image_width));
  const auto scaled = [scale](int64_t side, int64_t least) {
    return std::max<int64_t>(least, std::lround(scale * static_cast<double>(side)));
  };
  View view = whole_view(image_height, image_width);
  view.height = scaled(image_height, height);
  view.width = scaled(image_width, width);
  view.crop = {0, 0, view.height, view.width};
  return view;
}

View center_crop(View view, int64_t height, int64_t width) {
  view.crop = {center(view.height, height), center(view.width, width), height, width};
  return view;
}

Box needed_pixels(const View& view) {
  const Box& source = view.source;
  const Range rows = needed_range(view.filter, source.top, source.height, view.height, view.crop.top, view.crop.height);
  const Range columns =
      needed_range(view.filter, source.left, source.width, view.width, view.crop.left, view.crop.width);
  return {rows.begin, columns.begin, rows.end - rows.begin, columns.end - columns.begin};
}

Box needed_pixels(const std::vector<View>& views) {
  Box all = needed_pixels(views.front());
  for (const View& view : views) {
    const Box box = needed_pixels(view);
    const int64_t bottom = std::max(all.top + all.height, box.top + box.height);
    const int64_t right = std::max(all.left + all.width, box.left + box.width);
    all.top = std::min(all.top, box.top);
    all.left = std::min(all.left, box.left);
    all.height = bottom - all.top;
    all.width = right - all.left;
  }
  return all;
}

View random_crop(View view, int64_t height, int64_t width, const AugmentationKey& key) {
  if (view.height < height || view.width < width) throw std::invalid_argument("random_crop: larger than the image");
  const auto random = random_words(key, kCropBlock);
  view.crop = {uniform_below(random[0], static_cast<uint32_t>(view.height - height + 1)),
               uniform_below(random[1], static_cast<uint32_t>(view.width - width + 1)), height, width};
  return view;
}

View random_shift(View view, int64_t most, const AugmentationKey& key) {
  const auto random = random_words(key, kCropBlock);
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
  for (uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    const auto random = random_words(key, kResizedCropBlock + attempt);
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
  return uniform_below(random_words(key, kCropBlock)[2], 2) == 1;
}

}  // namespace settrain
