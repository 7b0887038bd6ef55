// The images that a user names: files, folders, and lists of files.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "datasets/file_table.h"

namespace settrain {

/// The files in the order given. An input is an image, by its name's ending, which need not be there; a folder: what
/// find_images() finds; a text file that lists images, a path a line, relative to the list's folder or absolute; or
/// "-": such a list from `standard_input`, whose paths are relative to the current folder. Throws DataError, naming the
/// input, where it is none of these, or holds no image.
FileTable image_inputs(const std::vector<std::string>& inputs, std::istream& standard_input);

}  // namespace settrain
