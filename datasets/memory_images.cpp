#include "datasets/memory_images.h"

#include <stdexcept>
#include <string>

namespace settrain {

MemoryImages::MemoryImages(std::vector<uint8_t> pixels, int64_t height, int64_t width, int64_t channels)
    : pixels_(std::move(pixels)), height_(height), width_(width), channels_(channels) {
  const int64_t per_image = height * width * channels;
  const auto total = static_cast<int64_t>(pixels_.size());
  if (per_image <= 0 || total % per_image != 0)
    throw std::invalid_argument("MemoryImages: sizes do not fit the pixels");
  size_ = total / per_image;
}

void MemoryImages::read(int64_t id, Image& image) const {
  if (id < 0 || id >= size_) throw std::out_of_range("MemoryImages: no image " + std::to_string(id));
  image.height = height_;
  image.width = width_;
  image.channels = channels_;
  const int64_t per_image = height_ * width_ * channels_;
  const auto first = pixels_.begin() + id * per_image;
  image.pixels.assign(first, first + per_image);
}

}  // namespace settrain
