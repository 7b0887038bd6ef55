// From a chart to pictures in a folder.
#pragma once

#include <filesystem>
#include <vector>

#include "src/plot/chart.h"

namespace settrain {

/// Writes NAME.csv and NAME.gp to the folder, which is made where it is not there, and then draws NAME.svg and NAME.png
/// with gnuplot. Gives the files' paths. Throws Error as check_chart(), before anything is written; RunError where a
/// file cannot be written; Error, saying that data and scripts are there, where gnuplot is missing or fails. No picture
/// is left half drawn.
std::vector<std::filesystem::path> draw_chart(const Chart& chart, const std::filesystem::path& folder);

}  // namespace settrain
