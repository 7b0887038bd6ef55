// The image files below a folder, and in a folder for every class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/file_table.h"

namespace settrain {

/// Adds to `files` all .jpg, .jpeg, .jfif, .png, .bmp, .webp, .tif and .tiff files of `folder`, a path from their root,
/// and of the folders in it, in the order of their paths. Hidden files and folders are left out, links to folders are
/// not followed. Throws DataError where there is no such folder.
void find_images(const std::filesystem::path& folder, FileTable& files);

/// Whether a file's name ends as an image's does, in capitals or not.
bool is_image(const std::filesystem::path& file);

/// The endings of image files, for messages.
inline constexpr const char* kImageEndings = ".jpg, .jpeg, .jfif, .png, .bmp, .webp, .tif or .tiff";

/// The images that find_images() finds below `root`, measured. Throws DataError where there is no such folder, or no
/// image in it.
FileTable unlabelled_images(const std::filesystem::path& root);

/// The names of the folders in `folder`, sorted, without hidden ones. Throws DataError, with `advice` at its end, where
/// `folder` cannot be listed.
std::vector<std::string> folders_in(const std::filesystem::path& folder, const std::string& advice);

/// The folders in `folder` that are not named after a class.
std::vector<std::string> unknown_folders(const std::filesystem::path& folder, const std::vector<std::string>& classes);

/// Adds the images of the existing folders root/split/CLASS to `files`, class by class and in the order of their paths,
/// as find_images() does. Returns their labels. `split` is a path from the root of `files`.
std::vector<int64_t> add_class_images(const std::string& split, const std::vector<std::string>& classes,
                                      FileTable& files);

/// Throws DataError where no label is of some class. With `may_lack` that is a warning, unless there is no label at
/// all. `folder`: the split's, for the message.
void check_every_class(const std::vector<int64_t>& labels, const std::vector<std::string>& classes,
                       const std::filesystem::path& folder, bool may_lack);

/// add_class_images() and check_every_class(). Throws DataError also for a folder that is no class.
std::vector<int64_t> read_class_images(const std::string& split, const std::vector<std::string>& classes, bool may_lack,
                                       FileTable& files);

/// Measures all files, see FileTable. Throws DataError naming a file that is a link to nothing or was removed
/// meanwhile.
void measure_found(FileTable& files);

}  // namespace settrain
