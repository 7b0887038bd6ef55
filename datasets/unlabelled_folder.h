// The images of a folder, without labels.
#pragma once

#include <cstdint>
#include <filesystem>

#include "datasets/image_files.h"

namespace settrain {

/// The files that find_images() finds.
class UnlabelledFolder : public ImageFiles {
 public:
  /// Throws DataError where there is no such folder, or no image in it.
  UnlabelledFolder(const std::filesystem::path& root, const ImageFileOptions& options);
};

}  // namespace settrain
