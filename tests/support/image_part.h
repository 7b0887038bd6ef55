// Compares parts of images with the whole images.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/decoding/image_decoders.h"
#include "src/core/random.h"
#include "tests/support/catch2.h"

namespace settrain::test {

inline Image decode_whole(std::span<const uint8_t> jpeg, int64_t channels) {
  ImagePart part;
  decode_jpeg(
      jpeg, channels,
      [](int64_t height, int64_t width) {
        return Box{0, 0, height, width};
      },
      part);
  return part.pixels;
}

/// A random box within the image, a function of `number`.
inline Box random_box(const Image& image, uint32_t number) {
  const auto words = random_words(11, Stream::kSynthetic, number);
  Box box;
  box.top = uniform_below(words[0], static_cast<uint32_t>(image.height));
  box.left = uniform_below(words[1], static_cast<uint32_t>(image.width));
  box.height = 1 + uniform_below(words[2], static_cast<uint32_t>(image.height - box.top));
  box.width = 1 + uniform_below(words[3], static_cast<uint32_t>(image.width - box.left));
  return box;
}

/// Decodes the box alone and compares it with `whole`.
inline void check_part(std::span<const uint8_t> jpeg, const Image& whole, const Box& box) {
  ImagePart part;
  decode_jpeg(
      jpeg, whole.channels, [&](int64_t, int64_t) { return box; }, part);
  CAPTURE(box.top, box.left, box.height, box.width);
  REQUIRE((part.top <= box.top && part.left <= box.left));
  REQUIRE(part.top + part.pixels.height >= box.top + box.height);
  REQUIRE(part.left + part.pixels.width >= box.left + box.width);
  int64_t wrong = 0;
  for (int64_t y = 0; y < box.height; ++y) {
    for (int64_t i = 0; i < box.width * whole.channels; ++i) {
      const int64_t in_part =
          ((box.top + y - part.top) * part.pixels.width + box.left - part.left) * whole.channels + i;
      const int64_t in_whole = ((box.top + y) * whole.width + box.left) * whole.channels + i;
      wrong += part.pixels.pixels[static_cast<size_t>(in_part)] != whole.pixels[static_cast<size_t>(in_whole)];
    }
  }
  CHECK(wrong == 0);
}

}  // namespace settrain::test
