// The texts around and within a chart's axes.
#pragma once

#include <string>

#include "src/plot/chart_layout.h"

namespace settrain {

/// gnuplot's commands for the title and the subtitle.
std::string head_texts(const ChartLayout& layout);

/// Those for a panel: its title, its axes' labels, the names of its categories, its legend, and its points' labels or,
/// where it has no points, "no runs yet".
std::string panel_texts(const ChartPanel& panel, const PanelLayout& place, const ChartLayout& layout);

}  // namespace settrain
