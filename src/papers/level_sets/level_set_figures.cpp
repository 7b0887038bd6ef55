#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "src/core/log.h"
#include "src/papers/level_sets/level_sets.h"
#include "src/plot/pictures.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// As the captions of figures 1 and 6 have it.
constexpr int64_t kReplications = 100;

LevelSetPanel noised(int k, const char* epsilon, int draws) {
  return {"noised_topk",
          {fmt::format("k={}", k), fmt::format("epsilon={}", epsilon), fmt::format("num_draws={}", draws), "margin=1"}};
}

// The smoothed hinge divides the scores by K: with the margin 1/K in that unit it is the smoothing of topk_hinge, whose
// margin is 1.
LevelSetPanel smoothed(int k, const char* tau) {
  return {"smoothed_topk_hinge",
          {fmt::format("k={}", k), fmt::format("tau={}", tau), fmt::format("alpha={}", 1.0 / k)}};
}

// The losses of Table 1 in the order of the paper's panels (a) to (j).
std::vector<LevelSetPanel> losses_of_table_1(int k) {
  const std::vector<std::string> size{fmt::format("k={}", k)};
  LevelSetPanel imbalanced = noised(k, "1.0", 30);
  imbalanced.loss = "noised_topk_imbalanced";
  imbalanced.settings.back() = "max_margin=1.5";
  imbalanced.settings.push_back("scale=1");
  return {{"topk_zero_one", size},     {"cross_entropy", {}},
          {"topk_hinge", size},        {"topk_hinge_calibrated", size},
          {"topk_hinge_convex", size}, smoothed(k, "0.1"),
          smoothed(k, "1.0"),          noised(k, "0.3", 30),
          noised(k, "1.0", 30),        imbalanced};
}

std::vector<LevelSetPanel> by_draws() {
  std::vector<LevelSetPanel> panels;
  for (const int k : {1, 2}) {
    for (const int draws : {1, 3, 10, 30, 100}) panels.push_back(noised(k, "1.0", draws));
  }
  return panels;
}

std::vector<LevelSetPanel> by_epsilon() {
  std::vector<LevelSetPanel> panels;
  for (const int k : {1, 2}) {
    for (const char* epsilon : {"0.01", "0.1", "0.3", "0.6", "1.0"}) panels.push_back(noised(k, epsilon, 50));
  }
  return panels;
}

// Pixels, and characters in a line of a panel's title.
constexpr size_t kPanelWidth = 300, kPanelHeight = 335, kBarWidth = 110, kTitleHeight = 40, kTitleLine = 38;

// The part that all panels share. The picture is made of square cells; the mask hides those that stick out of the
// triangle.
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

// The replications of the noised losses, if the figure has any.
std::string subtitle(const std::vector<LevelSetValues>& values, const LevelSetDraws& draws) {
  if (std::none_of(values.begin(), values.end(), [](const LevelSetValues& of) { return of.is_noised; })) return "";
  if (draws.replications == 1) return fmt::format("; noise drawn once at each point, seed {}", draws.seed);
  return fmt::format("; noised losses: mean of {} replications, seed {}", draws.replications, draws.seed);
}

Picture picture_of(const LossRegistry& registry, const LevelSetFigure& figure, const LevelSetRequest& request) {
  log::info(fmt::format("[figure] {}: {} panels", figure.name, figure.panels.size()));
  const PlaneGrid grid(request.size);
  const LevelSetDraws draws{request.seed, request.replications.value_or(figure.replications)};
  std::vector<LevelSetValues> values;
  for (const LevelSetPanel& panel : figure.panels) values.push_back(level_set_values(registry, panel, grid, draws));
  Picture picture = level_set_picture(figure, values, draws);
  picture.data = level_set_data(figure, grid, values);
  return picture;
}

}  // namespace

std::vector<LevelSetFigure> level_set_figures() {
  return {{"1", "level-sets-k2", "Losses for sets of K = 2", 5, losses_of_table_1(2), kReplications},
          {"4", "level-sets-draws", "The noised top-K loss by the number of draws", 5, by_draws(), 1},
          {"5", "level-sets-epsilon", "The noised top-K loss by epsilon", 5, by_epsilon(), kReplications},
          {"6", "level-sets-k1", "Losses for sets of K = 1", 5, losses_of_table_1(1), kReplications}};
}

std::string level_set_data(const LevelSetFigure& figure, const PlaneGrid& grid,
                           const std::vector<LevelSetValues>& values) {
  std::string text = "# " + figure.title + ". Level sets of losses; a block a panel.\n";
  const auto out = std::back_inserter(text);
  for (size_t panel = 0; panel < values.size(); ++panel) {
    fmt::format_to(out, "{}# {} {}\n# x y s_1 s_y s_3 loss level\n", panel == 0 ? "" : "\n\n",
                   figure.panels[panel].loss, figure.panels[panel].parameters());
    for (int64_t row = 0; row < grid.rows; ++row) {
      if (row > 0) text += '\n';
      for (int64_t column = 0; column < grid.columns; ++column) {
        const PlanePoint at = grid.at(column, row);
        const PlaneScores s = plane_scores(at);
        const double loss = values[panel].losses[static_cast<size_t>(row * grid.columns + column)];
        fmt::format_to(out, "{:.6g} {:.6g} {:.6g} {:.6g} {:.6g} {:.6g} {:.6g}\n", at.x, at.y, s[0], s[kPlaneLabel],
                       s[2], loss, values[panel].rescaled(loss));
      }
    }
  }
  return text;
}

Picture level_set_picture(const LevelSetFigure& figure, const std::vector<LevelSetValues>& values,
                          const LevelSetDraws& draws) {
  const size_t width = figure.columns * kPanelWidth + kBarWidth, height = figure.rows() * kPanelHeight + kTitleHeight;
  std::string commands =
      fmt::format(fmt::runtime(kLayout), fmt::arg("rows", figure.rows()), fmt::arg("columns", figure.columns),
                  fmt::arg("title", gnuplot_string(figure.title + subtitle(values, draws))), fmt::arg("width", width),
                  fmt::arg("height", height));
  for (size_t i = 0; i < values.size(); ++i) {
    const LevelSetPanel& panel = figure.panels[i];
    const char letter = static_cast<char>('a' + i);
    const bool has_lines = !values[i].is_noised || draws.replications > 1;  // around noise they would only hide it
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

std::vector<fs::path> draw_level_sets(const LossRegistry& registry, const std::vector<LevelSetFigure>& figures,
                                      const LevelSetRequest& request) {
  return draw_pictures(
      figures.size(), [&](size_t i) { return picture_of(registry, figures[i], request); }, request.folder);
}

}  // namespace settrain
