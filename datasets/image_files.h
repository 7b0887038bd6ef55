// Image files, decoded when they are read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/dataset.h"

namespace settrain {

/// Images of one size from files of any: decoded to `channels` (1 or 3), resized and cropped to height x width, see
/// decode_image.h. read() throws DataError for a file that is missing or corrupt.
class ImageFiles : public ImageSource {
 public:
  ImageFiles(std::vector<std::filesystem::path> files, int64_t channels, int64_t height, int64_t width);

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  void read(int64_t id, Image& image) const override;

  const std::vector<std::filesystem::path>& files() const { return files_; }
  /// Of the files' names and sizes.
  std::string digest() const;

 private:
  std::vector<std::filesystem::path> files_;
  int64_t channels_, height_, width_;
};

}  // namespace settrain
