#include "src/papers/level_sets/level_set_script.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/plot/pictures.h"

namespace settrain {
namespace {

// Pixels.
constexpr size_t kPanelWidth = 300, kPanelHeight = 335, kBarWidth = 110, kTitleHeight = 40;

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

// At the right of the last panel, for all of them.
constexpr const char* kColourBar = R"(
set colorbox vertical user origin {left:.4f},{bottom:.4f} size {width:.4f},{height:.4f}
set cbtics 0.2
set cblabel 'loss, rescaled to [0, 1]'
)";

// A panel: the picture, the lines, the mask, the triangle, the label's corner.
constexpr const char* kPanel = R"(
# {letter}: {loss}
{lines}set lmargin at screen {left:.4f}
set rmargin at screen {right:.4f}
set bmargin at screen {bottom:.4f}
set tmargin at screen {top:.4f}
set title "({letter}) {loss}\n{parameters}" noenhanced
set label 4 '{least:.3g} to {most:.3g}' at 0.5,-0.06 center front textcolor '#606060'
plot data index {index} using 1:2:7 with image, \
  {plot_lines}$mask with filledcurves closed linecolor 'white', \
  $triangle with lines linewidth 1.2 linecolor 'black', \
  '+' using (0.5):(0.8660254) every ::0::0 with points pointtype 7 pointsize 0.8 linecolor '#c00000'
)";

// Long lists of keys take two lines, or three.
std::string broken_into_lines(const std::string& parameters) {
  constexpr size_t kWidth = 36;
  std::string text;
  size_t in_line = 0, begin = 0;
  while (begin < parameters.size()) {
    const size_t comma = parameters.find(", ", begin);
    const size_t end = comma == std::string::npos ? parameters.size() : comma + 2;
    if (in_line > 0 && in_line + end - begin > kWidth + 1) {
      text += "\\n";
      in_line = 0;
    }
    text += parameters.substr(begin, end - begin);
    in_line += end - begin;
    begin = end;
  }
  return text;
}

// What is drawn of the noised losses, if the figure has any.
std::string subtitle(const std::vector<bool>& noised, const LevelSetDraws& draws) {
  if (std::none_of(noised.begin(), noised.end(), [](bool is) { return is; })) return "";
  if (draws.replications == 1) return fmt::format("; noise drawn once at each point, seed {}", draws.seed);
  return fmt::format("; noised losses: mean of {} replications, seed {}", draws.replications, draws.seed);
}

}  // namespace

std::string level_set_script(const LevelSetFigure& figure, const std::vector<LevelSetValues>& values,
                             const std::vector<bool>& noised, const LevelSetDraws& draws) {
  const size_t panels_width = figure.columns * kPanelWidth, panels_height = figure.rows() * kPanelHeight;
  const size_t width = panels_width + kBarWidth, height = panels_height + kTitleHeight;
  const auto across = [&](double pixels) { return pixels / static_cast<double>(width); };
  const auto up = [&](double pixels) { return pixels / static_cast<double>(height); };

  std::string panels;
  for (size_t i = 0; i < values.size(); ++i) {
    const double left = static_cast<double>(i % figure.columns * kPanelWidth);
    const double bottom = static_cast<double>((figure.rows() - 1 - i / figure.columns) * kPanelHeight);
    if (i + 1 == values.size()) {
      panels +=
          fmt::format(fmt::runtime(kColourBar), fmt::arg("left", across(static_cast<double>(panels_width) + 10)),
                      fmt::arg("bottom", up(static_cast<double>(panels_height) / 4)), fmt::arg("width", across(20)),
                      fmt::arg("height", up(static_cast<double>(panels_height) / 2)));
    }
    const bool lines = !noised[i] || draws.replications > 1;  // around noise they would only hide it
    panels += fmt::format(fmt::runtime(kPanel), fmt::arg("letter", static_cast<char>('a' + i)),
                          fmt::arg("loss", figure.panels[i].loss), fmt::arg("index", i),
                          fmt::arg("parameters", broken_into_lines(figure.panels[i].parameters())),
                          fmt::arg("lines", lines ? fmt::format(fmt::runtime(kFindLines), fmt::arg("index", i)) : ""),
                          fmt::arg("plot_lines", lines ? kPlotLines : ""), fmt::arg("left", across(left + 10)),
                          fmt::arg("right", across(left + kPanelWidth - 10)), fmt::arg("bottom", up(bottom + 5)),
                          fmt::arg("top", up(bottom + kPanelHeight - 60)), fmt::arg("least", values[i].least),
                          fmt::arg("most", values[i].most));
  }

  return picture_script(
      {.name = figure.name,
       .title = figure.title,
       .width = width,
       .height = height,
       .settings = kStyle,
       .commands = fmt::format("unset colorbox\nunset cbtics\nset multiplot title \"{}{}\" noenhanced font ',13'\n"
                               "{}\nunset multiplot",
                               figure.title, subtitle(noised, draws), panels)});
}

}  // namespace settrain
