#include "datasets/dataset.h"

#include <fmt/format.h>

namespace settrain {

void ImageSource::read_part(int64_t id, const ChoosePart& choose, ImagePart& part) const {
  read(id, part.pixels);
  part.top = part.left = 0;
  choose(part.pixels.height, part.pixels.width);
}

std::string ImageSource::describe(int64_t id) const {
  return fmt::format("image {}", id);
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

const Split& split_named(const Dataset& dataset, const std::string& name) {
  if (name == "calibration") return dataset.calibration;
  return name == "train" ? dataset.train : name == "val" ? dataset.val : dataset.test;
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
