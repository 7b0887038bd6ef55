// A data set of images that text files list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/image_files.h"
#include "datasets/image_list.h"
#include "datasets/registry.h"
#include "src/config/key.h"

namespace settrain {

struct FileListOptions {
  std::string root, train, val, test;
  int64_t num_classes = 0;

  static config::Keys keys();
};

/// How the classes of lists are named: class_0, class_1, ..., or by the folders that their training images lie in,
/// where every class has one folder of its own.
enum class ListedNames { kNumbers, kFolders };

/// The images of three lists, see image_list.h. Files call the classes by their numbers. A sample's id is its place in
/// its list, counted on through train, val and test. Throws DataError that names the file and the line, also where a
/// training image is in another list; KeyError for a list that is not there.
Dataset load_file_list(const FileListOptions& options, const ImageFileOptions& image_options,
                       ListedNames names = ListedNames::kNumbers);

/// The name of the folder of the training images of every class, [num_classes]; empty where a class' images lie in
/// several folders, a folder has several classes, or a class has no image.
std::vector<std::string> folders_of_classes(const ImageList& train, const FileTable& files, int64_t num_classes);

DatasetEntry file_list_entry();

}  // namespace settrain
