#include "datasets/dataset.h"

#include <fmt/format.h>

#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace settrain {

void ImageSource::read_part(int64_t id, const ChoosePart& choose, ImagePart& part) const {
  read(id, part.pixels);
  part.top = part.left = 0;
  choose(part.pixels.height, part.pixels.width);
}

std::string ImageSource::describe(int64_t id) const {
  return fmt::format("image {}", id);
}

MemoryImages::MemoryImages(std::vector<uint8_t> pixels, int64_t height, int64_t width, int64_t channels,
                           std::string origin)
    : pixels_(std::move(pixels)), height_(height), width_(width), channels_(channels), origin_(std::move(origin)) {
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

std::span<const int64_t> LabelLists::of(int64_t sample) const {
  const auto i = static_cast<size_t>(sample);
  return std::span(classes).subspan(static_cast<size_t>(offsets.at(i)),
                                    static_cast<size_t>(offsets.at(i + 1) - offsets[i]));
}

void LabelLists::add(std::span<const int64_t> labels) {
  if (offsets.empty()) offsets.push_back(0);
  classes.insert(classes.end(), labels.begin(), labels.end());
  offsets.push_back(static_cast<int64_t>(classes.size()));
}

void set_superclasses(const std::vector<std::string>& superclass_by_class, Dataset& dataset) {
  dataset.superclass_names.clear();
  dataset.superclass_of.clear();
  std::unordered_map<std::string, int64_t> index_of;
  for (const std::string& name : superclass_by_class) {
    const auto [found, is_new] = index_of.emplace(name, std::ssize(dataset.superclass_names));
    if (is_new) dataset.superclass_names.push_back(name);
    dataset.superclass_of.push_back(found->second);
  }
}

const Split& split_named(const Dataset& dataset, const std::string& name) {
  if (name == "calibration") return dataset.calibration;
  return name == "train" ? dataset.train : name == "val" ? dataset.val : dataset.test;
}

const char* why_empty(const Split& split) {
  if (split.name == "calibration") return ": data.calibration_share is 0, and no list data.calibration names images";
  if (split.name == "test" && split.images && split.images->features()) return ": data.test is empty";
  return split.name == "val" ? ": data.val_size is 0" : "";
}

std::vector<std::string> split_names(const Dataset& dataset) {
  std::vector<std::string> names{"train", "val", "test"};
  if (dataset.calibration.size() > 0) names.emplace_back("calibration");
  return names;
}

Split some_of(const Split& split, const std::vector<int64_t>& samples) {
  Split kept{split.name, split.images, {}, {}};
  if (!split.label_sets.empty()) kept.label_sets.offsets.push_back(0);
  for (const int64_t sample : samples) {
    kept.ids.push_back(split.ids[static_cast<size_t>(sample)]);
    kept.labels.push_back(split.labels[static_cast<size_t>(sample)]);
    if (!split.label_sets.empty()) kept.label_sets.add(split.label_sets.of(sample));
  }
  return kept;
}

std::vector<int64_t> count_classes(const Split& split, int64_t num_classes) {
  std::vector<int64_t> counts(static_cast<size_t>(num_classes));
  for (const int64_t label : split.label_sets.empty() ? split.labels : split.label_sets.classes)
    ++counts.at(static_cast<size_t>(label));
  return counts;
}

}  // namespace settrain
