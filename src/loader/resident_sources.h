// Which images stay in the memory of a run's device: data.on_device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "datasets/dataset.h"
#include "src/loader/data_options.h"
#include "src/loader/pipeline.h"
#include "src/loader/resident_images.h"

namespace settrain {

/// Whether the images of `dataset` stay on `device`, as options.on_device says, for loaders with these uses of the
/// pipeline. Throws KeyError where it says on and that cannot be: where the images of a split do not lie in memory,
/// have several sizes, or are resized.
bool images_stay_on(at::Device device, const Dataset& dataset, const LoaderOptions& options,
                    const PipelineOptions& pipeline, const std::vector<ViewUse>& uses);

/// The sources whose images stay on a device, each copied there once, whatever the number of loaders. Used by one
/// thread.
class ResidentSources {
 public:
  /// Copies the images of all splits, which lie in memory.
  ResidentSources(const Dataset& dataset, at::Device device);

  /// Null where these images do not stay on the device.
  std::shared_ptr<const ResidentImages> of(const std::shared_ptr<const ImageSource>& source) const;

  /// What all of them take on the device.
  uint64_t bytes() const;

 private:
  std::map<std::shared_ptr<const ImageSource>, std::shared_ptr<const ResidentImages>> images_{};
};

}  // namespace settrain
