// The images of a folder, without labels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/dataset.h"

namespace settrain {

/// All .jpg, .jpeg, .png, .bmp, .webp, .tif and .tiff files of a folder and the folders in it, in the order of their
/// paths. Hidden files and folders are left out, links to folders are not followed. Images are decoded when they are
/// read, to `channels` (1 or 3), and resized and cropped to height x width: see decode_image.h. read() throws DataError
/// for a corrupt file.
class UnlabelledFolder : public ImageSource {
 public:
  /// Throws DataError where there is no such folder, or no image in it.
  UnlabelledFolder(const std::filesystem::path& root, int64_t channels, int64_t height, int64_t width);

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
