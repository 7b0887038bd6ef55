// Images in a folder for every class.
#pragma once

#include <cstdint>
#include <string>

#include "datasets/dataset.h"
#include "datasets/image_files.h"
#include "datasets/registry.h"
#include "src/config/key.h"

namespace settrain {

struct ImageFolderOptions {
  std::string root;

  static config::Keys keys();
};

/// The images below root/train/CLASS, root/val/CLASS and root/test/CLASS, see find_images.h. The classes are the
/// folders of root/train that are not hidden, in the order of their names. A sample's id is its place among all files,
/// train, val and test, in the order of their paths.
///
/// A class without an image in val or test is a warning. Throws DataError, naming the folder or the file and line,
/// where a split is missing or has no image, where val or test has a class that train has not, and where a training
/// class has no image.
Dataset load_image_folder(const ImageFolderOptions& options, const ImageFileOptions& image_options);

DatasetEntry image_folder_entry();

}  // namespace settrain
