// With gnuplot itself.

#include "src/papers/level_sets/draw_level_sets.h"
#include "src/plot/pictures.h"
#include "tests/plot/has_gnuplot.h"
#include "tests/support/builtin_losses.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;

TEST_CASE("gnuplot draws every figure, with its panels' parameters and range") {
  SKIP_UNLESS(test::has_gnuplot(), test::kNoGnuplot);
  const test::TemporaryFolder folder;
  const auto figures = level_set_figures();
  draw_level_sets(test::builtin_losses(), figures, {.folder = folder.path(), .size = 21, .replications = 2});
  for (const LevelSetFigure& figure : figures) {
    CAPTURE(figure.name);
    CHECK(test::read_file(folder / (figure.name + ".png")).starts_with("\x89PNG\r\n"));
    const std::string svg = test::read_file(folder / (figure.name + ".svg"));
    CHECK_THAT(svg, Contains("</svg>") && Contains("<image") && Contains("rescaled"));
    for (const LevelSetPanel& panel : figure.panels) CHECK_THAT(svg, Contains(panel.loss));
  }
  const std::string svg = test::read_file(folder / "level-sets-draws.svg");
  for (const char* draws : {"num_draws: 1,", "num_draws: 3,", "num_draws: 30,", "num_draws: 100,"}) {
    CHECK_THAT(svg, Contains(draws));
  }
}

TEST_CASE("gnuplot has nothing to complain of in a script") {
  SKIP_UNLESS(test::has_gnuplot(), test::kNoGnuplot);
  const test::TemporaryFolder folder;
  const auto figures = level_set_figures();
  draw_level_sets(test::builtin_losses(), {figures.front()}, {.folder = folder.path(), .size = 21, .replications = 2});
  CHECK(run_gnuplot(folder.path(), {"level-sets-k2.gp"}).empty());
}
