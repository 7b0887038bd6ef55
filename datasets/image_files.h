// Image files, which are decoded when they are read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
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
  /// read() that returns the decoder's first warning, or an empty text, and logs none.
  std::string read_quietly(int64_t id, Image& image) const;
  std::string describe(int64_t id) const override { return "'" + files_.path(id).string() + "'"; }

  const FileTable& files() const { return files_; }
  /// A digest of the files' names and sizes.
  std::string digest() const;

 private:
  std::string decode(const std::filesystem::path& file, const ChoosePart& choose, ImagePart& part) const;

  FileTable files_;
  ImageFileOptions options_;
  std::shared_ptr<WarnedFiles> warned_;  // one for all sources
};

/// The file of an image; an empty path where the source has no files.
std::filesystem::path file_of(const ImageSource& images, int64_t id);

/// A way to do without images that cannot be read, for errors: "Replace the file, or ...".
inline constexpr const char* kSkipAdvice =
    "set data.on_bad_image: skip (an evaluation takes --set data.on_bad_image=skip, a run that goes on with --allow "
    "data.on_bad_image beside it)";

/// Throws DataError where image files of these splits are certain to be unreadable, before one is decoded: they are
/// empty, or their first bytes are no image's. These are looked at where a file's name ends as other pictures' do
/// (.heic), in splits of up to 5,000 images but the training one, and of files of 1 KiB or less where a split has up to
/// 5,000 of them; of PNG and BMP the size that they give must be possible. The message counts the files and names the
/// first of each split. `may_skip`: bad images are left out, and only a split that has no other is an error. Throws
/// Interrupted after a signal.
void refuse_unreadable(std::span<const Split* const> splits, bool may_skip = false);

}  // namespace settrain
