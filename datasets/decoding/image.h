// An image in memory, and parts of it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace settrain {

/// An image of 8-bit pixels, rows from the top, channels interleaved: pixels[(y * width + x) * channels + c].
struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;
};

/// A rectangle of pixels.
struct Box {
  int64_t top = 0, left = 0, height = 0, width = 0;

  bool operator==(const Box&) const = default;
};

/// A rectangle of an image's pixels, whose first is at (`top`, `left`).
struct ImagePart {
  Image pixels;
  int64_t top = 0, left = 0;
};

/// Returns the part of an image that is needed, given the image's size. The box lies within the image.
using ChoosePart = std::function<Box(int64_t height, int64_t width)>;

}  // namespace settrain
