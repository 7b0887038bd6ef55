#include "datasets/image_records.h"

#include <utility>

#include "datasets/image_files.h"

namespace settrain {

ImageRecords::ImageRecords(std::vector<ImageRecord> records) {
  for (ImageRecord& record : records) {
    std::string name = record.image;
    by_name_.emplace(std::move(name), std::move(record));
  }
}

const ImageRecord* ImageRecords::of(const ImageSource& images, int64_t id) const {
  const auto found = by_name_.find(file_of(images, id).stem().string());
  return found == by_name_.end() ? nullptr : &found->second;
}

ImageRecords records_of(const DatasetRegistry& registry, const config::Config& config) {
  const DatasetEntry& entry = registry.at(config.get<std::string>("data.name"));
  return ImageRecords(entry.records ? entry.records(config) : std::vector<ImageRecord>{});
}

}  // namespace settrain
