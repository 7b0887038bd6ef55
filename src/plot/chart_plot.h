// What gnuplot is told to draw within a chart's axes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/plot/chart.h"
#include "src/plot/chart_axis.h"

namespace settrain {

/// What chart_plot()'s commands need: how chart_csv()'s table is read.
std::string chart_reading();

/// The plot command of a panel (from 0): its intervals, and before them its series.
std::string chart_plot(const Chart& chart, size_t panel, const ChartScale& y);

/// How far a panel's series are moved along its x axis: with categories they stand side by side.
std::vector<double> series_shifts(const ChartPanel& panel);

/// How a series (from 0) looks: "linecolor '#0072b2'", "linewidth 1.8 dashtype 1", "pointtype 7 pointsize 0.85".
std::string series_colour(size_t series);
std::string series_line(size_t series);
std::string series_point(size_t series);

}  // namespace settrain
