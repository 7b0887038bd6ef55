// Statistics of a data set as files in a folder.
#pragma once

#include <filesystem>
#include <vector>

#include "src/data_tools/stats.h"

namespace settrain {

/// Writes stats.json, stats.txt and the data and NAME.gp of every figure to the folder, which is made where it is not
/// there, and then draws NAME.svg and NAME.png with gnuplot. Gives the files' paths. Throws RunError where a file
/// cannot be written; Error, saying that data and scripts are there, where gnuplot is missing or fails.
std::vector<std::filesystem::path> write_stats(const DataStats& stats, const std::filesystem::path& folder);

}  // namespace settrain
