#include "src/plot/chart_texts.h"

#include <fmt/format.h>

#include "src/plot/chart_labels.h"
#include "src/plot/chart_plot.h"
#include "src/plot/pictures.h"

namespace settrain {
namespace {

// Lines of text below each other, the first one's middle at `down`.
std::string lines_at(const std::vector<std::string>& lines, const ChartLayout& layout, double across, double down,
                     double distance, const char* how) {
  std::string commands;
  for (const std::string& line : lines) {
    commands +=
        fmt::format("set label {} at {} center noenhanced{}\n", gnuplot_string(line), layout.at(across, down), how);
    down += distance;
  }
  return commands;
}

std::string titles(const PanelLayout& place, const ChartLayout& layout) {
  const double across = (place.left + place.right) / 2, along = (place.top + place.bottom) / 2;
  const double title = place.top - kGap - kLine * (static_cast<double>(place.title.size()) - 0.5);
  std::string commands = lines_at(place.title, layout, across, title, kLine, "") +
                         lines_at(place.x_label, layout, across, place.names_bottom + kLine / 2, kLine, "");
  double left = place.numbers_left - kGap - kLine * (static_cast<double>(place.y_label.size()) - 0.5);
  for (const std::string& line : place.y_label) {
    commands += lines_at({line}, layout, left, along, 0, " rotate by 90");
    left += kLine;
  }
  return commands;
}

std::string category_names(const ChartPanel& panel, const PanelLayout& place, const ChartLayout& layout) {
  std::string commands;
  const auto add = [&](const std::string& name, const std::string& where) {
    if (name.empty()) return;
    commands += fmt::format("set label {} at {} noenhanced textcolor '#202020'\n", gnuplot_string(name), where);
  };
  if (!panel.x.categories.empty()) {
    const double down = place.bottom + kGap + (place.is_rotated ? 0 : kLine / 2);
    const std::string how = place.is_rotated ? fmt::format("right rotate by {}", kNameAngle) : "center";
    for (const ChartTick& tick : place.x.ticks) {
      add(tick.label, fmt::format("first {}, screen {:.5f} {}", tick.at, layout.up(down), how));
    }
  }
  if (!panel.y.categories.empty()) {
    for (const ChartTick& tick : place.y.ticks) {
      add(tick.label, fmt::format("screen {:.5f}, first {} right", layout.across(place.left - kGap), tick.at));
    }
  }
  return commands;
}

std::string labels_of_points(const ChartPanel& panel, const PanelLayout& place, const ChartLayout& layout) {
  if (!has_points(panel)) {
    return "set label 'no runs yet' at graph 0.5,0.5 center textcolor '#808080' font large(kind)\n";
  }
  if (panel.kind != ChartKind::kPoints) return "";
  std::string commands;
  for (const PointLabel& label : point_labels(panel, place, series_shifts(panel))) {
    const char* side = label.right > 0 ? "left" : label.right < 0 ? "right" : "center";
    commands += fmt::format("set label {} at {},{} {} offset screen {:.5f},{:.5f} noenhanced font small(kind) front\n",
                            gnuplot_string(label.text), label.x, label.y, side, label.right / layout.width,
                            label.up / layout.height);
    if (label.line_up == 0) continue;
    commands +=
        fmt::format("set arrow from {},{} rto screen {:.5f},{:.5f} nohead back linewidth 0.8 linecolor '#707070'\n",
                    label.x, label.y, label.right / layout.width, label.line_up / layout.height);
  }
  return commands;
}

// By hand: gnuplot's own legend guesses at the width of names, and cuts off what it takes to be too long.
std::string legend(const ChartPanel& panel, const ChartLegend& legend, const ChartLayout& layout) {
  std::string commands;
  size_t entry = 0;
  for (size_t i = 0; i < panel.series.size() && legend.rows > 0; ++i) {
    if (panel.series[i].name.empty()) continue;
    const double left = legend.columns[entry % legend.columns.size()], right = left + kLegendSample;
    const size_t row = entry++ / legend.columns.size();
    const double down = legend.top + (static_cast<double>(row) + 0.5) * kLegendLine;
    if (panel.kind != ChartKind::kPoints) {
      commands += fmt::format("set arrow from {} to {} nohead {} {}\n", layout.at(left, down), layout.at(right, down),
                              series_colour(i), series_line(i));
    }
    if (panel.kind != ChartKind::kSteps) {
      commands += fmt::format("set label '' at {} point {} {}\n", layout.at((left + right) / 2, down), series_colour(i),
                              series_point(i));
    }
    commands += fmt::format("set label {} at {} left noenhanced\n", gnuplot_string(panel.series[i].name),
                            layout.at(right + kLegendGap, down));
  }
  return commands;
}

}  // namespace

std::string head_texts(const ChartLayout& layout) {
  const double middle = layout.width / 2, below = kEdge + kLargeLine * static_cast<double>(layout.title.size());
  return lines_at(layout.title, layout, middle, kEdge + kLargeLine / 2, kLargeLine, " font large(kind)") +
         lines_at(layout.subtitle, layout, middle, below + kSmallLine / 2, kSmallLine,
                  " font small(kind) textcolor '#505050'");
}

std::string panel_texts(const ChartPanel& panel, const PanelLayout& place, const ChartLayout& layout) {
  return titles(place, layout) + category_names(panel, place, layout) + legend(panel, place.legend, layout) +
         labels_of_points(panel, place, layout);
}

}  // namespace settrain
