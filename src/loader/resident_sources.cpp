#include "src/loader/resident_sources.h"

#include <fmt/format.h>

#include <set>
#include <string>

#include "datasets/memory_images.h"
#include "src/core/error.h"

namespace settrain {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 31;  // that auto takes of a device's memory

std::set<std::shared_ptr<const ImageSource>> sources_of(const Dataset& dataset) {
  std::set<std::shared_ptr<const ImageSource>> sources;
  for (const std::string& name : split_names(dataset)) {
    const Split& split = split_named(dataset, name);
    if (split.size() > 0) sources.insert(split.images);
  }
  return sources;
}

const char* name_of(ViewUse use) {
  return use == ViewUse::kTraining ? "in training" : use == ViewUse::kTenCrops ? "for ten crops" : "in evaluation";
}

// Why the images cannot stay on a device; empty where they can.
std::string obstacle(const Dataset& dataset, const PipelineOptions& pipeline, const std::vector<ViewUse>& uses) {
  for (const auto& source : sources_of(dataset)) {
    const auto* images = dynamic_cast<const MemoryImages*>(source.get());
    if (!images) return fmt::format("the images of {} do not lie in memory", dataset.name);
    if (images->height() != dataset.height || images->width() != dataset.width)
      return fmt::format("the images of {} have several sizes", dataset.name);
  }
  for (const ViewUse use : uses) {
    if (Pipeline(pipeline, dataset.height, dataset.width, use).resizes(dataset.height, dataset.width)) {
      return fmt::format("{} the pipeline {} resizes images of {}x{} pixels", name_of(use), pipeline.pipeline,
                         dataset.height, dataset.width);
    }
  }
  return "";
}

uint64_t bytes_of(const Dataset& dataset) {
  uint64_t bytes = 0;
  for (const auto& source : sources_of(dataset)) bytes += dynamic_cast<const MemoryImages&>(*source).pixels().size();
  return bytes;
}

}  // namespace

bool images_stay_on(at::Device device, const Dataset& dataset, const LoaderOptions& options,
                    const PipelineOptions& pipeline, const std::vector<ViewUse>& uses) {
  const bool must = options.on_device == "on";
  if (options.on_device == "off" || (!must && !device.is_cuda())) return false;
  const std::string why_not = obstacle(dataset, pipeline, uses);
  if (must && !why_not.empty()) throw KeyError("data.on_device", "on: " + why_not + "; expected auto or off");
  return must || (why_not.empty() && bytes_of(dataset) <= kMostBytes);
}

ResidentSources::ResidentSources(const Dataset& dataset, at::Device device) {
  for (const auto& source : sources_of(dataset)) {
    const auto& images = dynamic_cast<const MemoryImages&>(*source);
    images_.emplace(source, std::make_shared<ResidentImages>(images, device));
  }
}

std::shared_ptr<const ResidentImages> ResidentSources::of(const std::shared_ptr<const ImageSource>& source) const {
  const auto found = images_.find(source);
  return found == images_.end() ? nullptr : found->second;
}

uint64_t ResidentSources::bytes() const {
  uint64_t bytes = 0;
  for (const auto& [source, images] : images_) bytes += images->bytes();
  return bytes;
}

}  // namespace settrain
