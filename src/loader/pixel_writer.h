// From 8-bit pixels to numbers that a network takes, in its layout.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/dataset.h"
#include "src/loader/kernels/normalise_kernels.h"

namespace settrain {

enum class PixelType {
  kFloat,     // (v / 255 - mean) / std in float32
  kBFloat16,  // the same, rounded to the nearest bfloat16
  kByte       // v itself: normalised where it is used
};

/// The type and layout of a batch's images.
struct PixelFormat {
  PixelType type = PixelType::kFloat;
  bool channels_last = false;

  bool operator==(const PixelFormat&) const = default;
};

/// Writes rows of pixels into images [channels, height, width] or, with channels_last, [height, width, channels].
class PixelWriter {
 public:
  PixelWriter(const Normalisation& normalisation, PixelFormat format);

  int64_t channels() const { return channels_; }
  PixelFormat format() const { return format_; }

  /// Row `y` of `image`, which holds height * width * channels numbers of the type: `pixels` [width, channels],
  /// mirrored where `flip` says so.
  void write_row(const uint8_t* pixels, int64_t y, int64_t height, int64_t width, bool flip, void* image) const;

 private:
  int64_t channels_;
  PixelFormat format_;
  // [channels, 256] the number for every pixel value, in each type
  std::vector<float> floats_;
  std::vector<uint16_t> bfloats_;
  std::vector<uint8_t> bytes_;
  EightPixels eight_pixels_{};
  bool computes_ = false;  // the same numbers, which takes less time than looking them up
};

}  // namespace settrain
