// Images in the memory of a device, which cuts views out of them: data.on_device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "datasets/dataset.h"
#include "src/loader/data_options.h"
#include "src/loader/pipeline.h"
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
  /// Memory on the device, in bytes.
  uint64_t bytes() const { return pixels_.nbytes(); }

  /// Writes to `places` [view.crop.height + view.crop.width] the rows and the columns of a view of image `id`, for
  /// render(). Plain arithmetic, for a worker thread. Throws std::invalid_argument where the view is scaled or belongs
  /// to an image of another size, and std::out_of_range where there is no such image.
  void locate(int64_t id, const View& view, int64_t* places) const;

  /// Views of `height` x `width` pixels: [views, channels, height, width] uint8 on the device, black beyond the image,
  /// channels last or contiguous. `places` [views, height + width] int64, on the CPU: the output of locate() for
  /// each view. Does not wait for the device where `places` is in pinned memory.
  at::Tensor render(const at::Tensor& places, int64_t height, int64_t width, bool channels_last) const;

 private:
  int64_t images_, height_, width_;
  at::Tensor pixels_;  // [1 + images * height * width, channels] uint8: a black pixel, then all images
};

/// Whether the images of `dataset` stay on `device`, by options.on_device, for loaders with these uses of the pipeline.
/// Logs where data.augment and its like keep images off a GPU on which they would stay.
/// Throws KeyError where on_device is `on` and the images of a split are not in memory, have several sizes, or are
/// resized.
bool images_stay_on(at::Device device, const Dataset& dataset, const LoaderOptions& options,
                    const PipelineOptions& pipeline, const std::vector<ViewUse>& uses);

/// The sources whose images stay on a device. Each is copied there once for all loaders. Used by one thread.
class ResidentSources {
 public:
  /// Copies the images of all splits, which must be in memory.
  ResidentSources(const Dataset& dataset, at::Device device);

  /// Null where these images do not stay on the device.
  std::shared_ptr<const ResidentImages> of(const std::shared_ptr<const ImageSource>& source) const;

  /// Memory of all images on the device, in bytes.
  uint64_t bytes() const;

 private:
  std::map<std::shared_ptr<const ImageSource>, std::shared_ptr<const ResidentImages>> images_{};
};

}  // namespace settrain
