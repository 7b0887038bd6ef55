#include "src/plot/chart_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "src/plot/text_size.h"

namespace settrain {
namespace {

// Pixels.
constexpr double kOnePanel = 720, kOfSeveral = 550, kPlotHeight = 320;

double widest_label(const ChartScale& scale) {
  double widest = 0;
  for (const ChartTick& tick : scale.ticks) widest = std::max(widest, text_width(tick.label, kText));
  return widest;
}

double lines_height(const std::vector<std::string>& lines, double line) {
  return static_cast<double>(lines.size()) * line;
}

// Room for the names below an axis that is `width` pixels wide.
bool must_rotate(const ChartScale& scale, double width) {
  size_t names = 0;
  for (const ChartTick& tick : scale.ticks) names += tick.label.empty() ? 0 : 1;
  return static_cast<double>(names) * (widest_label(scale) + kGap) > width;
}

// How far rotated names stick out at the left of the axis.
double overhang(const ChartScale& scale, double width) {
  double most = 0;
  for (const ChartTick& tick : scale.ticks) {
    const double across = text_width(tick.label, kText) * std::cos(kNameAngle * std::numbers::pi / 180);
    most = std::max(most, across - scale.place(tick.at) * width);
  }
  return most;
}

// The panel from `left` to the pixel that it gives; vertical places are left open.
double place_across(const ChartPanel& panel, double left, double width, PanelLayout& layout) {
  layout.x = x_scale(panel);
  layout.y = y_scale(panel);
  layout.y_label = wrapped(panel.y.label, kText, kPlotHeight);
  layout.left = left + kEdge + lines_height(layout.y_label, kLine) + kGap + widest_label(layout.y) + kGap;
  layout.right = left + std::max(width, legend_width(series_names(panel)) + 2 * kEdge) - kEdge - kGap;
  layout.is_rotated = !panel.x.categories.empty() && must_rotate(layout.x, layout.right - layout.left);
  if (layout.is_rotated) {
    const double more = std::max(0.0, left + kEdge + overhang(layout.x, layout.right - layout.left) - layout.left);
    layout.left += more;
    layout.right += more;
  }
  const double edge = layout.right + kEdge + kGap, middle = (layout.left + layout.right) / 2;
  if (panel.x.categories.empty()) layout.right -= widest_label(layout.x) / 4;
  layout.numbers_left = layout.left - widest_label(layout.y) - kGap;
  layout.title = wrapped(panel.title, kText, 2 * (edge - kEdge - middle));
  layout.x_label = wrapped(panel.x.label, kText, layout.right - layout.left);
  return edge;
}

double names_height(const PanelLayout& panel) {
  if (!panel.is_rotated) return kLine + kGap;
  return widest_label(panel.x) * std::sin(kNameAngle * std::numbers::pi / 180) + kGap + kLine / 2;
}

void place_legends(const Chart& chart, const std::vector<double>& edges, ChartLayout& layout) {
  const ChartPanel& first = chart.panels.front();
  const bool shared = std::all_of(chart.panels.begin(), chart.panels.end(), [&](const ChartPanel& panel) {
    return panel.kind == first.kind && series_names(panel) == series_names(first);
  });
  if (shared) {
    layout.panels.front().legend = legend_of(series_names(first), kEdge, layout.width - kEdge);
    return;
  }
  for (size_t i = 0; i < layout.panels.size(); ++i) {
    layout.panels[i].legend = legend_of(series_names(chart.panels[i]), edges[i] + kEdge, edges[i + 1] - kEdge);
  }
}

}  // namespace

std::string ChartLayout::at(double right, double down) const {
  return fmt::format("screen {:.5f},{:.5f}", across(right), up(down));
}

ChartLayout chart_layout(const Chart& chart) {
  ChartLayout layout;
  std::vector<double> edges{0};
  const double panel_width = chart.panels.size() == 1 ? kOnePanel : kOfSeveral;
  for (const ChartPanel& panel : chart.panels) {
    edges.push_back(place_across(panel, edges.back(), panel_width, layout.panels.emplace_back()));
  }
  layout.width = std::ceil(edges.back());
  layout.title = wrapped(chart.title, kLargeText, layout.width - 4 * kEdge);
  layout.subtitle = wrapped(chart.subtitle, kSmallText, layout.width - 4 * kEdge);
  place_legends(chart, edges, layout);

  double titles = 0, below = 0, legends = 0;
  for (const PanelLayout& panel : layout.panels) {
    titles = std::max(titles, lines_height(panel.title, kLine));
    below = std::max(below, names_height(panel) + lines_height(panel.x_label, kLine));
    legends = std::max(legends, static_cast<double>(panel.legend.rows) * kLegendLine);
  }
  const double top =
      kEdge + lines_height(layout.title, kLargeLine) + lines_height(layout.subtitle, kSmallLine) + kGap + titles + kGap;
  for (PanelLayout& panel : layout.panels) {
    panel.top = top;
    panel.bottom = top + kPlotHeight;
    panel.names_bottom = panel.bottom + names_height(panel);
    panel.legend.top = panel.bottom + below + kGap;
  }
  layout.height = std::ceil(top + kPlotHeight + below + (legends > 0 ? kGap + legends : 0) + kEdge);
  return layout;
}

}  // namespace settrain
