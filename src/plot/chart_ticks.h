// The marks on a chart's axes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace settrain {

/// A mark on an axis; a small one has no label.
struct ChartTick {
  double at;
  std::string label{};
};

/// Every category has a mark at its place 0, 1, ...; of more than 20 every second, third, ... has its name. Long names
/// are cut.
std::vector<ChartTick> category_ticks(const std::vector<std::string>& names);

/// At multiples of 1, 2 or 5 times a power of ten between `least` and `most`, `labels` at most.
std::vector<ChartTick> linear_ticks(double least, double most, size_t labels);

/// At powers of ten or, where fewer than three are between `least` and `most`, at others too. About `labels` at most.
std::vector<ChartTick> log_ticks(double least, double most, size_t labels);

}  // namespace settrain
