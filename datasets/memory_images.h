// Images that lie in memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "datasets/dataset.h"

namespace settrain {

/// Images of one size, one after the other.
class MemoryImages : public ImageSource {
 public:
  /// `pixels`: [images, height, width, channels]. Throws std::invalid_argument where the sizes do not divide them.
  MemoryImages(std::vector<uint8_t> pixels, int64_t height, int64_t width, int64_t channels);

  int64_t size() const override { return size_; }
  void read(int64_t id, Image& image) const override;

  int64_t height() const { return height_; }
  int64_t width() const { return width_; }
  int64_t channels() const { return channels_; }
  /// All of them: [images, height, width, channels].
  std::span<const uint8_t> pixels() const { return pixels_; }

 private:
  std::vector<uint8_t> pixels_;
  int64_t height_, width_, channels_, size_;
};

}  // namespace settrain
