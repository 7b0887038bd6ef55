// A folder of classes, divided into training, validation and test images.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "src/data_tools/split_rule.h"

namespace settrain {

struct ClassSplit {
  std::string name;                                     // of its folder
  std::vector<std::filesystem::path> train, val, test;  // from the folder of classes on, in the order of their paths

  int64_t size() const { return static_cast<int64_t>(train.size() + val.size() + test.size()); }
};

struct FolderSplit {
  std::vector<ClassSplit> classes;   // in the order of their names; their places are the labels
  std::vector<ClassSplit> left_out;  // too small: all their images are in `train`
  int64_t outside = 0;               // images in no class' folder, which are left out too
};

/// Divides the images of every folder in `folder`, and of the folders in it, by `rule`. Which images of a class go
/// where is a function of `seed`, the folder's name and the files' names: it does not depend on other classes.
///
/// Throws DataError where there is no such folder, where fewer than two classes are left, and for a name that the lists
/// cannot hold: with a line break, or of a class with a blank at its end.
FolderSplit split_folder(const std::filesystem::path& folder, const SplitRule& rule, uint64_t seed);

}  // namespace settrain
