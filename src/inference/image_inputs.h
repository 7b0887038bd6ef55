// The images that a user names: files, folders and lists of files; and groups of photographs of one specimen.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "datasets/file_table.h"

namespace settrain {

/// The files in the order given. An input is one of these: a picture (is_picture()), whether it exists or can be read
/// or not; a folder, for the pictures that find_images() finds; a text file with the path of an image in each line,
/// relative to the list's folder or absolute; "-", for such a list from `standard_input`, relative to the current
/// folder. Throws DataError, naming the input, where it is none of these, or has no image.
FileTable image_inputs(const std::vector<std::string>& inputs, std::istream& standard_input);

struct ImageGroups {
  std::vector<std::string> names;  // in the order of their first images
  std::vector<int64_t> group_of;   // [images]
};

/// The images, each once, since an image that was named twice would count twice in its group.
FileTable without_repeats(const FileTable& images);

/// `rule` is "folder", where each folder is a group, or a CSV file with a line for each image: its path, relative to
/// the file's folder or absolute, a comma, and its group, without a comma; the head `image,group` is optional;
/// or Pl@ntNet-300K's plantnet300K_metadata.json, whose observations are the groups of images with those names. Throws
/// DataError where the file cannot be read, a line has another form, or an image is in no group or in two. Warns where
/// the file names further images. `images` must not repeat an image.
ImageGroups image_groups(const std::string& rule, const FileTable& images);

}  // namespace settrain
