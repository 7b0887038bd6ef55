#include <algorithm>
#include <cmath>

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

const LevelSetFigure& figure(const std::vector<LevelSetFigure>& all, const std::string& number) {
  return *std::find_if(all.begin(), all.end(), [&](const LevelSetFigure& figure) { return figure.number == number; });
}

std::vector<std::string> parameters(const LevelSetFigure& figure) {
  std::vector<std::string> texts;
  for (const LevelSetPanel& panel : figure.panels) texts.push_back(panel.parameters());
  return texts;
}

}  // namespace

TEST_CASE("The figures of the paper, by number") {
  const auto all = level_set_figures();
  REQUIRE(all.size() == 4);
  CHECK(figure(all, "1").name == "level-sets-k2");
  CHECK(figure(all, "4").name == "level-sets-draws");
  CHECK(figure(all, "5").name == "level-sets-epsilon");
  CHECK(figure(all, "6").name == "level-sets-k1");
  for (const LevelSetFigure& figure : all) CHECK(figure.rows() == 2);
  CHECK(figure(all, "1").replications == 100);
  CHECK(figure(all, "4").replications == 1);
}

TEST_CASE("Figures 1 and 6 show the losses of Table 1 in the paper's order") {
  const auto all = level_set_figures();
  const std::vector<std::string> expected{
      "topk_zero_one",       "cross_entropy",       "topk_hinge",  "topk_hinge_calibrated", "topk_hinge_convex",
      "smoothed_topk_hinge", "smoothed_topk_hinge", "noised_topk", "noised_topk",           "noised_topk_imbalanced"};
  for (const char* number : {"1", "6"}) {
    std::vector<std::string> losses;
    for (const LevelSetPanel& panel : figure(all, number).panels) losses.push_back(panel.loss);
    CHECK(losses == expected);
  }
  CHECK(parameters(figure(all, "1"))[2] == "k: 2");
  CHECK(parameters(figure(all, "6"))[2] == "k: 1");
  CHECK(parameters(figure(all, "1"))[5] == "k: 2, tau: 0.1, alpha: 0.5");  // a margin of 1 in scores, which are over K
}

TEST_CASE("Figures 4 and 5 vary one parameter, K = 1 above K = 2") {
  const auto all = level_set_figures();
  const auto draws = parameters(figure(all, "4")), epsilons = parameters(figure(all, "5"));
  REQUIRE(draws.size() == 10);
  REQUIRE(epsilons.size() == 10);
  CHECK(draws[0] == "k: 1, epsilon: 1.0, num_draws: 1, margin: 1");
  CHECK(draws[9] == "k: 2, epsilon: 1.0, num_draws: 100, margin: 1");
  CHECK(epsilons[0] == "k: 1, epsilon: 0.01, num_draws: 50, margin: 1");
  CHECK(epsilons[9] == "k: 2, epsilon: 1.0, num_draws: 50, margin: 1");
}

TEST_CASE("Every panel's loss can be built, and is not the same all over the triangle") {
  for (const LevelSetFigure& figure : level_set_figures()) {
    for (const LevelSetPanel& panel : figure.panels) {
      CAPTURE(figure.name, panel.loss, panel.parameters());
      const LevelSetValues values = level_set_values(test::builtin_losses(), panel, PlaneGrid(11), {});
      CHECK(std::isfinite(values.most));
      CHECK(values.least >= 0);
      CHECK(values.most > values.least);
    }
  }
}

TEST_CASE("With the margin 1/K the smoothed hinge tends to K-th of the hinge that it smooths") {
  const PlaneGrid grid(11);
  const auto hinge = level_set_values(test::builtin_losses(), {"topk_hinge", {"k=2"}}, grid, {});
  const auto smooth =
      level_set_values(test::builtin_losses(), {"smoothed_topk_hinge", {"k=2", "tau=1e-5", "alpha=0.5"}}, grid, {});
  for (const size_t point : {size_t{0}, size_t{5}, size_t{4 * 11 + 5}}) {
    CHECK(2 * smooth.losses[point] == Approx(hinge.losses[point]).margin(1e-3));
  }
}

namespace {

const LevelSetFigure kFigure{
    "9", "tiny", "A tiny figure", 2, {{"topk_hinge", {"k=2"}}, {"noised_topk", {"k=2", "epsilon=0", "margin=1"}}}, 1};
const PlaneGrid kScriptGrid(5);

std::vector<LevelSetValues> values() {
  std::vector<LevelSetValues> all;
  for (const auto& panel : kFigure.panels)
    all.push_back(level_set_values(test::builtin_losses(), panel, kScriptGrid, {}));
  return all;
}

std::string script(const LevelSetDraws& draws) {
  return picture_script(level_set_picture(kFigure, values(), draws));
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("Data are blocks of rows, a block a panel") {
  const std::string text = level_set_data(kFigure, kScriptGrid, values());
  CHECK_THAT(text, Contains("# topk_hinge k: 2\n# x y s_1 s_y s_3 loss level\n0 0 2 0 0 1 0.5\n"));
  CHECK_THAT(text, Contains("\n0.5 0 1 0 1 2 1\n"));                                // the largest loss of topk_hinge
  CHECK_THAT(text, Contains("\n\n\n# noised_topk k: 2, epsilon: 0, margin: 1\n"));  // two blank lines: a new index
  CHECK(count(text, "\n\n\n") == 1);
  CHECK(count(text, "\n\n") == 3 + 2 + 3);  // 4 rows a panel, 3 blank lines between, and 2 between the panels
  CHECK(count(text, "nan") > 0);
}

TEST_CASE("A script names its data, its panels, their parameters and ranges") {
  const std::string text = script({.seed = 6, .replications = 20});
  CHECK_THAT(text, Contains("data = 'tiny.dat'") && Contains("set terminal svg") && Contains("set terminal pngcairo"));
  CHECK_THAT(
      text, Contains(R"("(a) topk_hinge\012k: 2")") && Contains(R"("(b) noised_topk\012k: 2, epsilon: 0, margin: 1")"));
  CHECK(count(text, "with image") == 2);
  CHECK(count(text, "data index 1 using") == 2);  // for the lines, and for the picture
  CHECK_THAT(text, Contains("'0 to 2'") && Contains("'0 to 1'"));
  CHECK_THAT(text, Contains("mean of 20 replications, seed 6"));
  CHECK_THAT(text, !Contains("{lines}") && !Contains("{index}"));
}

TEST_CASE("No lines are drawn around noise of one draw at each point") {
  const std::string text = script({.seed = 6, .replications = 1});
  CHECK_THAT(text, Contains("noise drawn once at each point, seed 6"));
  CHECK(count(text, "set contour base") == 1);
  CHECK(count(text, "data index 0 using") == 2);
  CHECK(count(text, "data index 1 using") == 1);
}

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

TEST_CASE("A folder that cannot be made or written to is reported before anything is drawn") {
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
