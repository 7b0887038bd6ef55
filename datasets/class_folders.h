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

/// Adds the images of the folders root/split/CLASS to `files`, class by class and by path, see find_images.h, and
/// returns their labels; `split` is a path from the root of `files`. Throws DataError where `split` has a folder that
/// is no class, or no image at all.
std::vector<int64_t> add_class_images(const std::string& split, const std::vector<std::string>& classes,
                                      FileTable& files);

/// Throws DataError where a class has none of the labels; where `may_lack`, that is a warning. `split`: as above, for
/// the message.
void check_every_class(const std::vector<int64_t>& labels, const std::vector<std::string>& classes,
                       const std::filesystem::path& split, bool may_lack);

/// Measures all files, see FileTable. Throws DataError naming one that went away after it was found.
void measure_found(FileTable& files);

}  // namespace settrain
