// Text files that list images with their labels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/file_table.h"

namespace settrain {

/// Of UTF-8, which some editors put in front of a text file; it is not part of its first line.
inline constexpr const char* kByteOrderMark = "\xEF\xBB\xBF";

struct ImageList {
  std::filesystem::path source;  // the list itself
  std::vector<int64_t> lines;    // where in it, from 1
  int64_t first_file = 0;        // of the table that it was read into: image i is file first_file + i
  std::vector<int64_t> labels;   // the first of every line
  LabelLists label_sets;         // empty where every line has one label

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  std::string place(int64_t i) const;  // "list.txt:7" of image i
};

/// Reads lines `path label[,label...]`, and adds the paths to `files`: a path from their root or an absolute one, which
/// may hold spaces, and class indices from 0. Empty lines are left out, and so is a carriage return at a line's end.
/// Whether the images are there is not looked at. Throws DataError naming file and line where a line is something else,
/// names a label twice or one of `num_classes` or more; and where the file cannot be read or lists nothing.
ImageList read_image_list(const std::filesystem::path& file, int64_t num_classes, FileTable& files);

/// Looks for the files of the list that was read last. Throws DataError naming the line of one that is not there.
void find_listed_files(const ImageList& list, FileTable& files);

}  // namespace settrain
