#include "src/papers/level_sets/level_set_picture.h"

#include "src/papers/level_sets/level_set_data.h"
#include "tests/support/builtin_losses.h"
#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;

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
  return picture_script(level_set_picture(kFigure, values(), {false, true}, draws));
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
