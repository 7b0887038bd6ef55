// A data set of images that text files list.
#pragma once

#include <cstdint>
#include <string>

#include "datasets/dataset.h"
#include "datasets/image_files.h"
#include "src/config/key.h"

namespace settrain {

struct FileListOptions {
  std::string root, train, val, test;
  int64_t num_classes = 0;

  static config::Keys keys();
};

/// The images of three lists, see image_list.h; classes are named by their numbers, class_0, class_1 and so on. A
/// sample's id is its place in its list, counted on through train, val and test. Throws DataError that names the file
/// and the line, also where a training image is in another list; KeyError for a list that is not there.
Dataset load_file_list(const FileListOptions& options, const ImageFileOptions& image_options);

}  // namespace settrain
