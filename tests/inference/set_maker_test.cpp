#include "src/inference/set_maker.h"

#include <ATen/ATen.h>

#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Catch::Contains;
using Members = std::vector<int64_t>;

TrainedModel four_classes() {
  TrainedModel model{.file = "trees.safetensors", .config = config::Config({})};
  model.card.class_names = {"a", "b", "c", "d"};
  model.card.superclass_names = {"ac", "bd"};
  model.card.superclass_of = {0, 1, 0, 1};
  return model;
}

// [1, 4]: a's probability is 0.4, b's 0.35, c's 0.05, d's 0.2.
at::Tensor scores() {
  return at::tensor({0.4F, 0.35F, 0.05F, 0.2F}).log().unsqueeze(0);
}

Members members(const SetMaker& maker, size_t rule = 0) {
  return maker(scores(), 0).at(0).at(rule).members;
}

}  // namespace

TEST_CASE("sets hold the best first, with their probabilities") {
  const SetMaker maker(four_classes(), {"top:3", "error:0.3", "top:3"}, false);
  CHECK(maker.rule_names() == std::vector<std::string>{"top:3", "error:0.3"});
  CHECK(members(maker) == Members{0, 1, 3});
  CHECK(members(maker, 1) == Members{0, 1});
  CHECK(maker(scores(), 0)[0][0].probabilities[2] == Approx(0.2));
}

TEST_CASE("without rules those that are calibrated answer, or the best few") {
  TrainedModel model = four_classes();
  CHECK(SetMaker(model, {}, false).rule_names() == std::vector<std::string>{"top:4"});
  CalibratedRule lac;
  lac.rule = parse_set_rule("conformal:lac:0.1");
  lac.classes = 4;
  lac.thresholds = {-0.3};
  model.rules.emplace().rules = {lac};
  const SetMaker maker(model, {}, false);
  CHECK(maker.rule_names() == std::vector<std::string>{"conformal:lac:0.1"});
  CHECK(members(maker) == Members{0, 1});
  CHECK_THROWS_WITH(SetMaker(model, {"conformal:aps:0.1"}, false),
                    Contains("conformal:aps:0.1 is not calibrated") && Contains("calibrated are: conformal:lac:0.1"));
}

TEST_CASE("where a run's rules cannot be taken, only top:K answers") {
  TrainedModel model = four_classes();
  model.rules_problem = "calibrated for other weights";
  CHECK(members(SetMaker(model, {"top:2"}, false)) == Members{0, 1});
  for (const std::vector<std::string>& rules : {std::vector<std::string>{}, {"error:0.1"}, {"conformal:aps:0.1"}}) {
    CHECK_THROWS_WITH(SetMaker(model, rules, false), Contains("calibrated for other weights"));
  }
}

TEST_CASE("rules of an earlier version that mean something else today are refused by name") {
  TrainedModel model = four_classes();
  model.rules.emplace().outdated = {parse_set_rule("conformal:aps:0.1")};
  CHECK_THROWS_WITH(SetMaker(model, {"conformal:aps:0.1"}, false),
                    Contains("conformal:aps:0.1") && Contains("calibrate it again"));
  CHECK(SetMaker(model, {}, false).rule_names() == std::vector<std::string>{"top:4"});
}

TEST_CASE("superclasses have the probability of their classes together") {
  TrainedModel model = four_classes();
  const SetMaker maker(model, {"top:1", "error:0.5"}, true);
  CHECK(maker.names() == model.card.superclass_names);
  CHECK(members(maker) == Members{1});  // b and d, though a is the best class
  CHECK(members(maker, 1) == Members{1});
  CHECK(maker(scores(), 0)[0][0].probabilities[0] == Approx(0.55));
  CHECK_THROWS_AS(SetMaker(model, {"top:3"}, true), ConfigError);

  model.card.is_sigmoid = true;
  const SetMaker of_sigmoids(model, {"top:1"}, true);
  const at::Tensor logits = at::tensor({2.0F, 1.0F, -1.0F, 1.5F}).unsqueeze(0);
  CHECK(of_sigmoids(logits, 0)[0][0].members == Members{0});
  CHECK(of_sigmoids(logits, 0)[0][0].probabilities[0] == Approx(at::sigmoid(logits)[0][0].item<float>()));
  CHECK_THROWS_AS(SetMaker(model, {"error:0.1"}, true), ConfigError);
}

TEST_CASE("other rules answer with the superclasses of their classes") {
  TrainedModel model = four_classes();
  CalibratedRule lac;
  lac.rule = parse_set_rule("conformal:lac:0.1");
  lac.classes = 4;
  lac.thresholds = {-0.38};
  model.rules.emplace().rules = {lac};
  CHECK(members(SetMaker(model, {}, true)) == Members{0});
}

TEST_CASE("superclasses that are not there are not asked for") {
  TrainedModel model = four_classes();
  model.card.superclass_names.clear();
  model.card.superclass_of.clear();
  CHECK_THROWS_WITH(SetMaker(model, {}, true), Contains("have no superclasses"));
}

}  // namespace settrain
