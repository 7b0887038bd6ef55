#include "src/loader/resident_images.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <fmt/format.h>

#include <limits>
#include <set>
#include <stdexcept>
#include <string>

#include "datasets/dataset.h"
#include "src/core/error.h"
#include "src/core/log.h"

namespace settrain {
namespace {

// A row or column beyond the image. It stays negative with any other place added, so that its pixels become the first
// one, which is black.
constexpr int64_t kBeyond = std::numeric_limits<int64_t>::min() / 2;

constexpr const char* kChangesPixels = "the augmentation changes pixels, which is done on the CPU";

constexpr uint64_t kMostBytes = uint64_t{1} << 31;  // the most that auto uses of a device's memory

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
  for (const ViewUse use : uses) {
    if (Pipeline(pipeline, dataset.height, dataset.width, use).augmentation().is_on()) return kChangesPixels;
  }
  return "";
}

uint64_t bytes_of(const Dataset& dataset) {
  uint64_t bytes = 0;
  for (const auto& source : sources_of(dataset)) bytes += dynamic_cast<const MemoryImages&>(*source).pixels().size();
  return bytes;
}

}  // namespace

ResidentImages::ResidentImages(const MemoryImages& images, at::Device device)
    : images_(images.size()),
      height_(images.height()),
      width_(images.width()),
      pixels_(at::empty({1 + images.size() * images.height() * images.width(), images.channels()},
                        at::TensorOptions(device).dtype(at::kByte))) {
  const at::Tensor source =
      at::from_blob(const_cast<uint8_t*>(images.pixels().data()), {pixels_.size(0) - 1, images.channels()}, at::kByte);
  pixels_.narrow(0, 0, 1).zero_();
  pixels_.narrow(0, 1, source.size(0)).copy_(source);
}

void ResidentImages::locate(int64_t id, const View& view, int64_t* places) const {
  if (id < 0 || id >= images_) throw std::out_of_range("ResidentImages: no image " + std::to_string(id));
  const Box &source = view.source, &crop = view.crop;
  if (source != Box{0, 0, height_, width_} || view.height != height_ || view.width != width_)
    throw std::invalid_argument("ResidentImages: the view is scaled, or of an image of another size");
  for (int64_t i = 0; i < crop.height; ++i) {
    const int64_t y = crop.top + i;
    *places++ = y >= 0 && y < height_ ? 1 + (id * height_ + y) * width_ : kBeyond;
  }
  for (int64_t i = 0; i < crop.width; ++i) {
    const int64_t x = crop.left + (view.flip ? crop.width - 1 - i : i);
    *places++ = x >= 0 && x < width_ ? x : kBeyond;
  }
}

at::Tensor ResidentImages::render(const at::Tensor& places, int64_t height, int64_t width, bool channels_last) const {
  const int64_t views = places.size(0);
  const at::Tensor there = places.to(pixels_.device(), /*non_blocking=*/true);
  const at::Tensor rows = there.narrow(1, 0, height).unsqueeze(2),
                   columns = there.narrow(1, height, width).unsqueeze(1);
  const at::Tensor of_pixels = (rows + columns).clamp_min_(0).view({-1});
  at::Tensor images = at::empty({views, channels(), height, width}, pixels_.options(),
                                channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
  const at::Tensor by_pixel = images.permute({0, 2, 3, 1});
  if (by_pixel.is_contiguous()) {  // one channel is, in either layout
    at::Tensor flat = by_pixel.view({-1, channels()});
    at::index_select_out(flat, pixels_, 0, of_pixels);
  } else {
    images.copy_(at::index_select(pixels_, 0, of_pixels).view(by_pixel.sizes()).permute({0, 3, 1, 2}));
  }
  return images;
}

bool images_stay_on(at::Device device, const Dataset& dataset, const LoaderOptions& options,
                    const PipelineOptions& pipeline, const std::vector<ViewUse>& uses) {
  const bool must = options.on_device == config::Switch::kOn;
  if (options.on_device == config::Switch::kOff || (!must && !device.is_cuda())) return false;
  const std::string why_not = obstacle(dataset, pipeline, uses);
  if (must && !why_not.empty()) throw KeyError("data.on_device", "on: " + why_not + "; expected auto or off");
  if (why_not == kChangesPixels) {
    log::info(fmt::format("[data] the images do not stay on {}, as they would: {}", device.str(), why_not));
  }
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
