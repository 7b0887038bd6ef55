// The most probable class joins sets that would be empty.
#include <ATen/ATen.h>

#include <string>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/p_values.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

const ClassFacts kFive{.classes = 5,
                       .train_counts = {9, 7, 5, 3, 1},
                       .superclass_of = {0, 0, 1, 1, 1},
                       .taxonomy = superclass_taxonomy({"A", "B"}, {0, 0, 1, 1, 1})};

struct Draw {
  at::Tensor scores, labels;
};

Draw draw_images(int64_t images, int64_t seed) {
  at::manual_seed(static_cast<uint64_t>(seed));
  const at::Tensor scores = at::randn({images, 5}, at::kDouble).mul(2);
  return {scores, scores.add(at::randn(scores.sizes(), at::kDouble)).argmax(1)};
}

/// Whether `filled` has the sets of `plain`, and where these are empty the class with the largest of `scores`.
bool only_fills(const at::Tensor& filled, const at::Tensor& plain, const at::Tensor& scores) {
  const at::Tensor best = at::zeros_like(plain).scatter_(1, scores.argmax(1, /*keepdim=*/true), true);
  return at::equal(filled, at::where(plain.any(1, /*keepdim=*/true), plain, best));
}

TEST_CASE("with nonempty the most probable class joins empty sets, and no other set changes") {
  const Draw known = draw_images(200, 1), judged = draw_images(400, 2);
  for (const auto& [score, rest] : {std::pair("lac", ":0.6"),
                                    {"aps", ":0.6"},
                                    {"raps(k=1", ":0.6"},
                                    {"saps(randomised=true", ":0.6"},
                                    {"pas", ":0.6"},
                                    {"tree(nodes=2", ":0.6"},
                                    {"lac", ":0.6:classwise"},
                                    {"lac", ":0.6:superclass"},
                                    {"aps", ":0.6:rc3p"},
                                    {"risk", ":0.6"}}) {
    const std::string name(score), open = name.find('(') == std::string::npos ? "(" : ",";
    const auto sets = [&](const std::string& text) {
      const CalibratedRule rule = calibrate(parse_set_rule(text), kFive, known.scores, known.labels, 3);
      return sets_of(rule, judged.scores, /*first_image=*/7);
    };
    INFO(name << rest);
    const at::Tensor plain = sets("conformal:" + name + (open == "," ? ")" : "") + rest);
    const at::Tensor filled = sets("conformal:" + name + open + "nonempty=true)" + rest);
    CHECK(plain.any(1).logical_not().any().item<bool>());
    CHECK(only_fills(filled, plain, judged.scores));
  }
}

TEST_CASE("at a place the most probable class that occurs joins") {
  const Draw known = draw_images(200, 1), judged = draw_images(400, 2);
  const std::vector<bool> occurs{true, false, true, true, false};
  const auto sets = [&](const std::string& name) {
    const CalibratedRule rule = calibrate(parse_set_rule(name), kFive, known.scores, known.labels, 3);
    return sets_of(for_place(rule, place_weights(rule, occurs)), judged.scores);
  };
  const at::Tensor absent = at::tensor({0, 1, 0, 0, 1}, at::kLong).to(at::kBool);
  const at::Tensor filled = sets("conformal:lac(nonempty=true):0.6");
  CHECK(only_fills(filled, sets("conformal:lac:0.6"), judged.scores.masked_fill(absent, -1e9)));
  CHECK_FALSE(filled.logical_and(absent).any().item<bool>());
}

TEST_CASE("of equal scores the first class joins") {
  const ClassFacts facts{.classes = 3};
  const at::Tensor known = at::tensor({9., 0., 0.}, at::kFloat).repeat({20, 1});
  const CalibratedRule rule =
      calibrate(parse_set_rule("conformal:lac(nonempty=true):0.1"), facts, known, at::zeros({20}, at::kLong), 0);
  const at::Tensor sets = sets_of(rule, at::tensor({1.F, 2.F, 2.F}).unsqueeze(0));
  CHECK(at::equal(sets, at::tensor({0, 1, 0}, at::kLong).to(at::kBool).unsqueeze(0)));
}

}  // namespace
}  // namespace settrain
