// The image files below a folder.
#pragma once

#include <filesystem>

#include "datasets/file_table.h"

namespace settrain {

/// Adds to `files` all .jpg, .jpeg, .png, .bmp, .webp, .tif and .tiff files of `folder`, a path from their root, and of
/// the folders in it, in the order of their paths. Hidden files and folders are left out, links to folders are not
/// followed. Throws DataError where there is no such folder.
void find_images(const std::filesystem::path& folder, FileTable& files);

/// Whether a file's name ends as an image's does, in capitals or not.
bool is_image(const std::filesystem::path& file);

/// The endings of their names, for messages.
inline constexpr const char* kImageEndings = ".jpg, .jpeg, .png, .bmp, .webp, .tif or .tiff";

}  // namespace settrain
