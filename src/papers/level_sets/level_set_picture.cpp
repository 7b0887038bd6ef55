#include "src/papers/level_sets/level_set_picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/plot/picture_text.h"

namespace settrain {
namespace {

// Pixels, and characters in a line of a panel's title.
constexpr size_t kPanelWidth = 300, kPanelHeight = 335, kBarWidth = 110, kTitleHeight = 40, kTitleLine = 38;

// What all panels share. The picture is made of square cells; the mask hides those that stick out of the triangle.
constexpr const char* kStyle = R"(
set palette defined (0 '#fdfdf6', 0.25 '#c5e3cf', 0.5 '#68b3c0', 0.75 '#32699f', 1 '#1f2355')
set cbrange [0:1]
unset key
unset border
unset tics
set size ratio -1
set xrange [-0.08:1.08]
set yrange [-0.11:0.95]

$mask << END
-0.2 -0.2
1.2 -0.2
1.2 1.2
-0.2 1.2
-0.2 -0.2
0 0
0.5 0.8660254
1 0
0 0
END
$triangle << END
0 0
1 0
0.5 0.8660254
0 0
END

set label 1 '{/:Italic s}_1 = 2' at 0,-0.06 center front
set label 2 '{/:Italic s}_3 = 2' at 1,-0.06 center front
set label 3 '{/:Italic s_y} = 2' at 0.55,0.88 left front textcolor '#c00000'
)";

// A panel's lines. Their levels are none of those at which losses are level: 0, 0.5 and 1.
constexpr const char* kFindLines = R"(set contour base
unset surface
set cntrparam levels incremental 0.05,0.1,0.95
set table $lines
splot data index {index} using 1:2:7 with lines
unset table
unset contour
set surface
)";
constexpr const char* kPlotLines = R"($lines using 1:2 with lines linewidth 0.6 linecolor '#303030', \
  )";

// At the right of all panels.
constexpr const char* kColourBar = R"(
set colorbox vertical user origin 1 - 100.0 / {width},0.25 size 20.0 / {width},0.5
set cbtics 0.2
set cblabel 'loss, rescaled to [0, 1]'
)";

// A panel: the picture, the lines, the mask, the triangle, the label's corner.
constexpr const char* kPanel = R"(
# {letter}: {loss}
{bar}{lines}set title {title} noenhanced
set label 4 '{least:.3g} to {most:.3g}' at 0.5,-0.06 center front textcolor '#606060'
plot data index {index} using 1:2:7 with image, \
  {plot_lines}$mask with filledcurves closed linecolor 'white', \
  $triangle with lines linewidth 1.2 linecolor 'black', \
  '+' using (0.5):(0.8660254) every ::0::0 with points pointtype 7 pointsize 0.8 linecolor '#c00000'
)";

// The panels' place; above each there is room for its title.
constexpr const char* kLayout = R"(unset colorbox
unset cbtics
set multiplot layout {rows},{columns} title {title} noenhanced font ',13' \
  margins screen 10.0 / {width},1 - 120.0 / {width},5.0 / {height},1 - 100.0 / {height} \
  spacing screen 20.0 / {width},65.0 / {height}
)";

// What is drawn of the noised losses, if the figure has any.
std::string subtitle(const std::vector<bool>& noised, const LevelSetDraws& draws) {
  if (std::none_of(noised.begin(), noised.end(), [](bool is) { return is; })) return "";
  if (draws.replications == 1) return fmt::format("; noise drawn once at each point, seed {}", draws.seed);
  return fmt::format("; noised losses: mean of {} replications, seed {}", draws.replications, draws.seed);
}

}  // namespace

Picture level_set_picture(const LevelSetFigure& figure, const std::vector<LevelSetValues>& values,
                          const std::vector<bool>& noised, const LevelSetDraws& draws) {
  const size_t width = figure.columns * kPanelWidth + kBarWidth, height = figure.rows() * kPanelHeight + kTitleHeight;
  std::string commands =
      fmt::format(fmt::runtime(kLayout), fmt::arg("rows", figure.rows()), fmt::arg("columns", figure.columns),
                  fmt::arg("title", gnuplot_string(figure.title + subtitle(noised, draws))), fmt::arg("width", width),
                  fmt::arg("height", height));
  for (size_t i = 0; i < values.size(); ++i) {
    const LevelSetPanel& panel = figure.panels[i];
    const char letter = static_cast<char>('a' + i);
    const bool has_lines = !noised[i] || draws.replications > 1;  // around noise they would only hide it
    const bool is_last = i + 1 == values.size();
    commands += fmt::format(
        fmt::runtime(kPanel), fmt::arg("letter", letter), fmt::arg("loss", panel.loss), fmt::arg("index", i),
        fmt::arg("bar", is_last ? fmt::format(fmt::runtime(kColourBar), fmt::arg("width", width)) : ""),
        fmt::arg("title", gnuplot_string(
                              fmt::format("({}) {}\n{}", letter, panel.loss, wrapped(panel.parameters(), kTitleLine)))),
        fmt::arg("lines", has_lines ? fmt::format(fmt::runtime(kFindLines), fmt::arg("index", i)) : ""),
        fmt::arg("plot_lines", has_lines ? kPlotLines : ""), fmt::arg("least", values[i].least),
        fmt::arg("most", values[i].most));
  }
  return {.name = figure.name,
          .title = figure.title,
          .width = width,
          .height = height,
          .settings = fmt::format("data = '{}.dat'{}", figure.name, kStyle),
          .commands = commands + "unset multiplot"};
}

}  // namespace settrain
