// The image files below a folder.
#pragma once

#include <filesystem>
#include <vector>

namespace settrain {

/// All .jpg, .jpeg, .png, .bmp, .webp, .tif and .tiff files of `root` and the folders in it, in the order of their
/// paths. Hidden files and folders are left out, links to folders are not followed. Throws DataError where there is no
/// such folder.
std::vector<std::filesystem::path> find_images(const std::filesystem::path& root);

/// Whether a file's name ends as an image's does, in capitals or not.
bool is_image(const std::filesystem::path& file);

/// The endings of their names, for messages.
inline constexpr const char* kImageEndings = ".jpg, .jpeg, .png, .bmp, .webp, .tif or .tiff";

}  // namespace settrain
