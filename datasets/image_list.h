// Text files that list images with their labels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/dataset.h"

namespace settrain {

struct ImageList {
  std::filesystem::path source;  // the list itself
  std::vector<int64_t> lines;    // where in it, from 1
  std::vector<std::filesystem::path> files;
  std::vector<int64_t> labels;  // the first of every line
  LabelLists label_sets;        // empty where every line has one label

  std::string place(size_t i) const;  // "list.txt:7" of image i
};

/// Reads lines `path label[,label...]`: a path from `root` or an absolute one, which may hold spaces, and class indices
/// from 0. Empty lines are left out, and so is a carriage return at a line's end. Throws DataError naming file and line
/// where a line is something else, names a label twice or one of `num_classes` or more, or its image is not there; and
/// where the file cannot be read or lists nothing.
ImageList read_image_list(const std::filesystem::path& file, const std::filesystem::path& root, int64_t num_classes);

}  // namespace settrain
