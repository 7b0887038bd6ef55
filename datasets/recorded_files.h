// The images that a run saw: a digest for each split, and a list of their files, by which a later difference is named.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "datasets/dataset.h"

namespace settrain {

/// SHA-256 over the split's images in their order: the names and sizes of their files, or where they have none their
/// ids and ImageSource::origin(); over their labels; and over the numbers of classes and channels. The training
/// split's digest covers the ids in both cases, since augmentation depends on them.
std::string digest_of(const Split& split, const Dataset& dataset);

/// The files of these splits, for difference_of_files(): text compressed by gzip, some 10 to 25 bytes a file. Splits
/// whose images are no files are left out; the result is empty where no split has any.
std::string list_of_files(std::span<const Split* const> splits);

/// How the files of a split differ from those of an earlier record.
struct FileDifference {
  std::string text{};       // "'test/a/2.png' has 512 bytes, and had 300; of 4 images 1 has changed"; or empty
  bool same_names = false;  // whether the files have the same names in the same order
};

/// Compares the split with the file `list`, which holds a list_of_files(). `digest`: the split's digest at that time.
/// The text is empty where the list is missing, damaged, or of another time.
FileDifference difference_of_files(const std::filesystem::path& list, const std::string& digest, const Split& now);

}  // namespace settrain
