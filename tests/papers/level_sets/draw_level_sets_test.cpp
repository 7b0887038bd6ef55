#include <algorithm>

#include "src/core/error.h"
#include "src/papers/level_sets/level_sets.h"
#include "src/plot/pictures.h"
#include "tests/plot/fake_gnuplot.h"
#include "tests/plot/has_gnuplot.h"
#include "tests/support/builtin_losses.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;
using test::FakeGnuplot;
namespace fs = std::filesystem;

namespace {

const std::vector<LevelSetFigure> kFigures{{"8", "one", "One", 1, {{"topk_hinge", {"k=2"}}}, 1},
                                           {"9", "two", "Two", 1, {{"cross_entropy", {}}}, 1}};

std::vector<fs::path> draw(const fs::path& folder) {
  return draw_level_sets(test::builtin_losses(), kFigures, {.folder = folder, .size = 11});
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

const std::vector<std::string> kDataAndScripts{"one.dat", "one.gp", "two.dat", "two.gp"};

}  // namespace

TEST_CASE("Pictures, data and scripts are in the folder, and nothing else") {
  const FakeGnuplot fake("eval \"$3\"; echo '</svg>' >\"$out.svg\"; echo IEND >\"$out.png\"");
  const test::TemporaryFolder folder;
  const auto files = draw(folder / "new/figures");
  CHECK(names_in(folder / "new/figures") ==
        std::vector<std::string>{"one.dat", "one.gp", "one.png", "one.svg", "two.dat", "two.gp", "two.png", "two.svg"});
  REQUIRE(files.size() == 8);
  for (const fs::path& file : files) CHECK(fs::exists(file));
  CHECK(test::read_file(folder / "new/figures/two.svg") == "</svg>\n");
  CHECK_THAT(test::read_file(folder / "new/figures/two.dat"), Contains("# cross_entropy"));
}

TEST_CASE("Without gnuplot data and scripts of all figures are written, and the error says what to do") {
  const FakeGnuplot none;
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(draw(folder.path()),
                    Contains("gnuplot-nox") && Contains("run `gnuplot one.gp` in " + folder.path().string()));
  CHECK(names_in(folder.path()) == kDataAndScripts);
}

TEST_CASE("A gnuplot that fails half way leaves no picture, and spoils none") {
  const FakeGnuplot fake("eval \"$3\"; echo half >\"$out.svg\"; echo 'disk quota exceeded' >&2; exit 1");
  const test::TemporaryFolder folder;
  folder.write("one.svg", std::string("old"));
  CHECK_THROWS_WITH(draw(folder.path()), Contains("disk quota exceeded") && Contains("data and scripts are there"));
  CHECK(test::read_file(folder / "one.svg") == "old");
  fs::remove(folder / "one.svg");
  CHECK(names_in(folder.path()) == kDataAndScripts);
}

TEST_CASE("A gnuplot that writes nothing is an error") {
  const FakeGnuplot fake("exit 0");
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(draw(folder.path()), Contains("one.svg"));
}

TEST_CASE("A folder that cannot be made or written to is told before anything is drawn") {
  const test::TemporaryFolder folder;
  folder.write("file", std::string("no folder"));
  CHECK_THROWS_AS(draw(folder / "file/figures"), RunError);
  CHECK_THROWS_WITH(draw(folder / "file/figures"), Contains("file/figures"));
  CHECK_THROWS_AS(draw("/proc/settrain-figures"), RunError);
}

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
