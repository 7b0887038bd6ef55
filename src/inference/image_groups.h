// Photographs that belong together: several of one specimen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/file_table.h"

namespace settrain {

struct ImageGroups {
  std::vector<std::string> names;  // in the order of their first images
  std::vector<int64_t> group_of;   // [images]
};

/// The images, each once: one that was named twice would count twice in its group.
FileTable without_repeats(const FileTable& images);

/// `rule` is "folder": the images of a folder are a group; or a CSV file with a line an image: its path, relative to
/// the file's folder or absolute, a comma, and its group, which holds no comma; a first line `image,group` is left out.
/// Throws DataError where the file cannot be read, a line is no such line, or an image is in no group or in two; warns
/// where it names others. No image may be there twice.
ImageGroups image_groups(const std::string& rule, const FileTable& images);

}  // namespace settrain
