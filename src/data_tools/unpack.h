// Archives to folders, by tar and unzip.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "datasets/download.h"
#include "src/core/file_lock.h"

namespace settrain {

/// Unpacks `archive`, whose one folder has the name of `target`, to `target`: into a hidden folder beside it, which is
/// renamed once it holds all the files `proof`. So `target` is there whole or not at all. What a killed call left is
/// removed first. `target` is not there, or empty; tar or unzip hold `lock` as well.
///
/// Throws DataError where there is no such program, where it fails, or where a file of `proof` is missing; the archive
/// stays. Throws Interrupted after a signal.
void unpack(const std::filesystem::path& archive, Archive kind, const std::filesystem::path& target,
            const std::vector<std::string>& proof, const FileLock& lock);

}  // namespace settrain
