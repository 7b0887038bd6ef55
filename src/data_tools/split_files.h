// The files that say how a folder was divided.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "src/data_tools/split_folder.h"

namespace settrain {

/// What was asked for.
struct SplitRequest {
  std::filesystem::path folder, out;
  SplitRule rule;
  uint64_t seed = 4;
  bool overwrite = false;
};

/// Throws RunError where `request.out` holds files already, unless `overwrite` is set.
void check_out(const SplitRequest& request);

/// Writes to `request.out`, which is made where it is missing: train.txt, val.txt and test.txt with lines `path label`
/// (image_list.h), classes.csv with lines `class_N,folder` (class_table.h) and, last, split.json, which is there only
/// if the others are whole; docs/file_formats.md has its fields. Throws RunError where that fails.
void write_split(const SplitRequest& request, const FolderSplit& split);

/// For people: a table of counts, what was left out, and the lines of a config that uses it.
std::string describe_split(const SplitRequest& request, const FolderSplit& split);

}  // namespace settrain
