// Records of a data set's images in its files, such as the organ that a photograph of a plant shows.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "datasets/registry.h"

namespace settrain {

/// Records by the names of the images' files.
class ImageRecords {
 public:
  /// The first of several records with one name counts.
  explicit ImageRecords(std::vector<ImageRecord> records);

  bool empty() const { return by_name_.empty(); }
  /// The record of an image; null where there is none, or the image has no file of its own.
  const ImageRecord* of(const ImageSource& images, int64_t id) const;

 private:
  std::unordered_map<std::string, ImageRecord> by_name_{};
};

/// The records of the config's data set, see DatasetEntry::records; empty where it has none.
ImageRecords records_of(const DatasetRegistry& registry, const config::Config& config);

}  // namespace settrain
