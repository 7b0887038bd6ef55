// Image files, which are decoded when they are read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "datasets/dataset.h"
#include "datasets/file_table.h"
#include "src/config/key.h"

namespace settrain {

/// Keys of every data set of image files.
struct ImageFileOptions {
  bool grey = false, apply_orientation = false;

  static config::Keys keys();
  int64_t channels() const { return grey ? 1 : 3; }
};

class WarnedFiles;

/// Images of any size from files, see decode_image.h. read() and read_part() throw DataError, naming the file, where it
/// is missing or cannot be decoded. The first warning of a decoder is logged with its file at once, and the number of
/// files with warnings when the last ImageFiles goes. In a build without image decoding the constructor throws Error.
class ImageFiles : public ImageSource {
 public:
  ImageFiles(FileTable files, const ImageFileOptions& options);

  int64_t size() const override { return files_.size(); }
  void read(int64_t id, Image& image) const override;
  void read_part(int64_t id, const ChoosePart& choose, ImagePart& part) const override;
  std::string describe(int64_t id) const override { return "'" + files_.path(id).string() + "'"; }

  const FileTable& files() const { return files_; }
  /// A digest of the files' names and sizes.
  std::string digest() const;

 private:
  FileTable files_;
  ImageFileOptions options_;
  std::shared_ptr<WarnedFiles> warned_;  // one for all sources
};

/// The file of an image; an empty path where the source has no files.
std::filesystem::path file_of(const ImageSource& images, int64_t id);

}  // namespace settrain
