// Statistics of a data set as text, JSON, charts and files (docs/figures.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "src/data_tools/stats.h"
#include "src/plot/chart.h"
#include "src/plot/pictures.h"

namespace settrain {

/// For people: a table with a column for each split, classes by name, and the effect of the label noise.
std::string stats_text(const DataStats& stats);

/// For programs: an object, whose keys docs/file_formats.md explains.
std::string stats_json(const DataStats& stats);

/// Writes stats.json, stats.txt and, for every figure, its data and NAME.gp to the folder, which is created where it is
/// missing, and then draws NAME.svg and NAME.png with gnuplot. Returns the files' paths. Throws RunError where a file
/// cannot be written; Error, saying that data and scripts are there, where gnuplot is missing or fails.
std::vector<std::filesystem::path> write_stats(const DataStats& stats, const std::filesystem::path& folder);

/// The Lorenz curves of images by class, in percent, and that of classes of equal size. The legend has each curve's
/// name and Gini coefficient.
ChartPanel lorenz_panel(const std::vector<std::pair<std::string, std::vector<int64_t>>>& counts);

/// `lorenz`: the Lorenz curves of the splits. `class_counts`: the images of each class, from the most to the fewest.
Chart lorenz_chart(const DataStats& stats);
Chart class_counts_chart(const DataStats& stats);

/// Whether the noise matrix can be drawn: there is noise, and 2 to 2000 classes, so that each has a pixel or more.
bool has_noise_figure(const DataStats& stats);

/// `noise_matrix`: for every true class, the share of its training images whose label is each class after the noise, on
/// a logarithmic scale. Classes are ordered by superclass, where there are any.
Picture noise_figure(const DataStats& stats);

}  // namespace settrain
