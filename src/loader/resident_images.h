// Images in the memory of a device, which cuts views out of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "datasets/memory_images.h"
#include "src/loader/view.h"

namespace settrain {

/// A copy of all images of a source. Thread-safe.
class ResidentImages {
 public:
  /// Copies the images to `device`.
  ResidentImages(const MemoryImages& images, at::Device device);

  int64_t height() const { return height_; }
  int64_t width() const { return width_; }
  int64_t channels() const { return pixels_.size(1); }
  /// What they take on the device.
  uint64_t bytes() const { return pixels_.nbytes(); }

  /// Writes to `places` [view.crop.height + view.crop.width] where render() finds the rows and the columns of a view of
  /// image `id`. Plain arithmetic, for a worker thread. Throws std::invalid_argument where the view is scaled, or not
  /// of an image of this size, and std::out_of_range where there is no such image.
  void locate(int64_t id, const View& view, int64_t* places) const;

  /// Views of `height` x `width` pixels: [views, channels, height, width] uint8 on the device, black beyond the image,
  /// channels last or contiguous. `places` [views, height + width] int64, on the CPU: what locate() wrote for each.
  /// Does not wait for the device where they are in pinned memory.
  at::Tensor render(const at::Tensor& places, int64_t height, int64_t width, bool channels_last) const;

 private:
  int64_t images_, height_, width_;
  at::Tensor pixels_;  // [1 + images * height * width, channels] uint8: a black pixel, and then all the images'
};

}  // namespace settrain
