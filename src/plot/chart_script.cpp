#include "src/plot/chart_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/plot/chart_layout.h"
#include "src/plot/chart_plot.h"
#include "src/plot/chart_texts.h"
#include "src/plot/pictures.h"

namespace settrain {
namespace {

// What all panels share. Sizes of letters are in pixels in an SVG, in points in a PNG.
constexpr const char* kStyle = R"(
set encoding utf8
set grid linetype 1 linecolor '#e4e4e4' linewidth 0.8
set border 3 linecolor '#505050'
set tics nomirror noenhanced textcolor '#202020'
set errorbars 0.8
set clip two
set key off noenhanced
large(kind) = kind eq 'svg' ? ',14' : ',11'
small(kind) = kind eq 'svg' ? ',10' : ',8')";

constexpr const char* kPanel = R"(
# Panel {number}
set lmargin at screen {left:.5f}
set rmargin at screen {right:.5f}
set tmargin at screen {top:.5f}
set bmargin at screen {bottom:.5f}
{x}{y}{texts}{plot}
unset label
unset arrow
)";

// Names of categories are labels instead, since gnuplot reads codes within those of ticks.
std::string axis_commands(char axis, const ChartScale& scale, bool has_names) {
  std::vector<std::string> ticks;
  for (const ChartTick& tick : scale.ticks) {
    const char* level = tick.label.empty() ? " 1" : "";  // 1: a small mark
    ticks.push_back(fmt::format("{} {}{}", gnuplot_string(has_names ? "" : tick.label), tick.at, level));
  }
  return fmt::format("{0} logscale {1}\nset {1}range [{2}:{3}]\nset {1}tics ({4})\n", scale.is_log ? "set" : "unset",
                     axis, scale.least, scale.most, fmt::join(ticks, ", "));
}

}  // namespace

std::string chart_script(const Chart& chart) {
  check_chart(chart);
  const ChartLayout layout = chart_layout(chart);
  std::string commands = "set multiplot\n" + head_texts(layout);
  for (size_t i = 0; i < layout.panels.size(); ++i) {
    const ChartPanel& panel = chart.panels[i];
    const PanelLayout& place = layout.panels[i];
    commands += fmt::format(fmt::runtime(kPanel), fmt::arg("number", i + 1),
                            fmt::arg("left", layout.across(place.left)), fmt::arg("right", layout.across(place.right)),
                            fmt::arg("top", layout.up(place.top)), fmt::arg("bottom", layout.up(place.bottom)),
                            fmt::arg("x", axis_commands('x', place.x, !panel.x.categories.empty())),
                            fmt::arg("y", axis_commands('y', place.y, !panel.y.categories.empty())),
                            fmt::arg("texts", panel_texts(panel, place, layout)),
                            fmt::arg("plot", chart_plot(chart, i, place.y)));
  }
  return picture_script({.name = chart.name,
                         .title = chart.title,
                         .width = static_cast<uint64_t>(layout.width),
                         .height = static_cast<uint64_t>(layout.height),
                         .settings = chart_reading() + kStyle,
                         .commands = commands + "unset multiplot",
                         .data_ending = ".csv"});
}

}  // namespace settrain
