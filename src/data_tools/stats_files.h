// Statistics of a data set as text, JSON and files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/data_tools/stats.h"

namespace settrain {

/// For people: a table with a column for each split, classes by name, and the effect of the label noise.
std::string stats_text(const DataStats& stats);

/// For programs: an object, whose keys docs/file_formats.md explains.
std::string stats_json(const DataStats& stats);

/// Writes stats.json, stats.txt and, for every figure, its data and NAME.gp to the folder, which is created where it is
/// missing, and then draws NAME.svg and NAME.png with gnuplot. Returns the files' paths. Throws RunError where a file
/// cannot be written; Error, saying that data and scripts are there, where gnuplot is missing or fails.
std::vector<std::filesystem::path> write_stats(const DataStats& stats, const std::filesystem::path& folder);

}  // namespace settrain
