// Text files that list images with their labels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/file_table.h"

namespace settrain {

struct ImageList {
  std::filesystem::path source;  // the list itself
  std::vector<int64_t> lines;    // line numbers, from 1
  int64_t first_file = 0;        // in the table that it was read into: image i is file first_file + i
  std::vector<int64_t> labels;   // the first of every line
  LabelLists label_sets;         // empty where every line has one label

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  std::string place(int64_t i) const;  // of image i: "list.txt:7"
};

/// Reads lines `path label[,label...]`, and adds the paths to `files`. A path is relative to their root or absolute,
/// and may contain spaces; labels are class indices from 0. Empty lines and carriage returns are ignored. Does not
/// check that the images exist. Throws DataError naming file and line where a line has another form, repeats a label,
/// or has a label of `num_classes` or more; and where the file cannot be read or lists nothing.
ImageList read_image_list(const std::filesystem::path& file, int64_t num_classes, FileTable& files);

/// Checks that the files of the list that was read last exist. Throws DataError naming the line of a missing file.
void find_listed_files(const ImageList& list, FileTable& files);

}  // namespace settrain
