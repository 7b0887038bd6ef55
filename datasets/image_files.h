// Image files, decoded when they are read.
#pragma once

#include <cstdint>
#include <string>

#include "datasets/dataset.h"
#include "datasets/file_table.h"
#include "src/config/key.h"

namespace settrain {

/// What images from files become.
struct ImageFileOptions {
  int64_t image_size = 0;
  bool grey = false;

  static config::Keys keys();
  int64_t channels() const { return grey ? 1 : 3; }
};

/// Images of one size from files of any: decoded to `channels` (1 or 3), resized and cropped to height x width, see
/// resize.h. read() throws DataError for a file that is missing or corrupt.
class ImageFiles : public ImageSource {
 public:
  ImageFiles(FileTable files, int64_t channels, int64_t height, int64_t width);

  int64_t size() const override { return files_.size(); }
  void read(int64_t id, Image& image) const override;
  std::string describe(int64_t id) const override { return "'" + files_.path(id).string() + "'"; }

  const FileTable& files() const { return files_; }
  /// Of the files' names and sizes.
  std::string digest() const;

 private:
  FileTable files_;
  int64_t channels_, height_, width_;
};

}  // namespace settrain
