// Images in a folder for every class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/file_table.h"

namespace settrain {

/// The names of the folders in `folder`, sorted, without hidden ones. Throws DataError, with `advice` at its end, where
/// `folder` cannot be listed.
std::vector<std::string> folders_in(const std::filesystem::path& folder, const std::string& advice);

/// The folders of `folder` that are none of the classes.
std::vector<std::string> unknown_folders(const std::filesystem::path& folder, const std::vector<std::string>& classes);

/// Adds the images of the folders root/split/CLASS that are there to `files`, class by class and by path, see
/// find_images.h, and returns their labels; `split` is a path from the root of `files`.
std::vector<int64_t> add_class_images(const std::string& split, const std::vector<std::string>& classes,
                                      FileTable& files);

/// Throws DataError where a class has none of the labels; where `may_lack`, that is a warning, but for no label at all.
/// `folder`: of the split, for the message.
void check_every_class(const std::vector<int64_t>& labels, const std::vector<std::string>& classes,
                       const std::filesystem::path& folder, bool may_lack);

/// add_class_images(), which throws DataError for a folder that is no class too, and check_every_class().
std::vector<int64_t> read_class_images(const std::string& split, const std::vector<std::string>& classes, bool may_lack,
                                       FileTable& files);

/// Measures all files, see FileTable. Throws DataError naming one that went away after it was found.
void measure_found(FileTable& files);

}  // namespace settrain
