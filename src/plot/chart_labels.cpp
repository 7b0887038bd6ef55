#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "src/core/text.h"
#include "src/plot/chart_panel.h"
#include "src/plot/pictures.h"

namespace settrain {
namespace {

constexpr double kPoint = 5, kGap = 8, kLine = 14;  // pixels: half a point, from its middle to the text, a line of text

// Pixels from the lower left corner of the axes.
struct Box {
  double left, right, bottom, top;

  double covers(const Box& other) const {
    return std::max(0.0, std::min(right, other.right) - std::max(left, other.left)) *
           std::max(0.0, std::min(top, other.top) - std::max(bottom, other.bottom));
  }
};

// Beside a point: where the text begins (1), ends (-1) or has its middle (0), and by how many lines it is above.
struct Side {
  int right = 0;
  double lines = 0;
};
constexpr Side kSides[]{{1, 0},    {-1, 0},    {0, 1}, {0, -1}, {1, 0.8},  {-1, 0.8},
                        {1, -0.8}, {-1, -0.8}, {0, 2}, {0, -2}, {-1, 1.6}, {1, -1.6}};

}  // namespace

std::string label_commands(const ChartPanel& panel) {
  const ChartRange x = x_range(panel), y = y_range(panel);
  const auto across = [&](const ChartPoint& point) { return x.place(point.x) * kAxesWidth; };
  const auto up = [&](double value) { return y.place(std::clamp(value, y.least, y.most)) * kAxesHeight; };
  const auto box_of = [&](const ChartPoint& point, const Side& side) {
    const double width = 0.9 * kCharacter * static_cast<double>(count_characters(point.label));
    const double middle = across(point) + side.right * (kGap + width / 2), line = up(point.y) + side.lines * kLine;
    return Box{middle - width / 2, middle + width / 2, line - kLine / 2, line + kLine / 2};
  };
  const double far = 10 * kAxesWidth;
  std::vector<Box> taken{
      {-far, 0, -far, far}, {kAxesWidth, far, -far, far}, {-far, far, -far, 0}, {-far, far, kAxesHeight, far}};
  std::vector<ChartPoint> labelled;
  for (size_t i = 0; i < panel.series.size(); ++i) {
    for (ChartPoint point : panel.series[i].points) {
      if (!is_drawn(point)) continue;
      point.x += shift_of(panel, i);
      taken.push_back({across(point) - kPoint, across(point) + kPoint, up(point.below.value_or(point.y)) - kPoint,
                       up(point.above.value_or(point.y)) + kPoint});
      if (!point.label.empty()) labelled.push_back(point);
    }
  }
  std::string commands;
  for (const ChartPoint& point : labelled) {
    double least = std::numeric_limits<double>::infinity();
    Side best{};
    for (const Side& side : kSides) {
      double covered = 0;
      for (const Box& other : taken) covered += box_of(point, side).covers(other);
      if (covered < least) best = side;
      least = std::min(covered, least);
    }
    taken.push_back(box_of(point, best));
    commands += fmt::format("set label {} at {},{} {} offset character {},{} font small front\n",
                            gnuplot_string(one_line(point.label)), point.x, point.y,
                            best.right > 0   ? "left"
                            : best.right < 0 ? "right"
                                             : "center",
                            best.right, best.lines);
  }
  return commands;
}

}  // namespace settrain
