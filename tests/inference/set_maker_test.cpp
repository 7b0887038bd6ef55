#include "src/inference/set_maker.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

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
  const SetMaker maker(four_classes(), {"top:3", "error:0.3", "top:3"});
  CHECK(maker.rule_names() == std::vector<std::string>{"top:3", "error:0.3"});
  CHECK(members(maker) == Members{0, 1, 3});
  CHECK(members(maker, 1) == Members{0, 1});
  CHECK(maker(scores(), 0)[0][0].probabilities[2] == Approx(0.2));
}

TEST_CASE("without rules the default rule answers, or the best few") {
  TrainedModel model = four_classes();
  CHECK(SetMaker(model, {}).rule_names() == std::vector<std::string>{"top:4"});
  CalibratedRule lac;
  lac.rule = parse_set_rule("conformal:lac:0.1");
  lac.classes = 4;
  lac.thresholds = {-0.3};
  model.rules.emplace().rules = {lac};
  const SetMaker maker(model, {});
  CHECK(maker.rule_names() == std::vector<std::string>{"conformal:lac:0.1"});
  CHECK(members(maker) == Members{0, 1});
  CalibratedRule average{.rule = parse_set_rule("average:2"), .classes = 4, .thresholds = {0.1}};
  model.rules->rules = {average, lac};
  CHECK(SetMaker(model, {}).rule_names() == std::vector<std::string>{"conformal:lac:0.1"});
  model.rules->chosen = "average:2";
  CHECK(SetMaker(model, {}).rule_names() == std::vector<std::string>{"average:2"});
  model.rules.emplace().rules = {lac};
  CHECK_THROWS_WITH(SetMaker(model, {"conformal:aps:0.1"}),
                    Contains("conformal:aps:0.1 is not calibrated") && Contains("calibrated are: conformal:lac:0.1"));
}

TEST_CASE("where a run's rules cannot be taken, only top:K answers") {
  TrainedModel model = four_classes();
  model.rules_problem = "calibrated for other weights";
  CHECK(members(SetMaker(model, {"top:2"})) == Members{0, 1});
  for (const std::vector<std::string>& rules : {std::vector<std::string>{}, {"error:0.1"}, {"conformal:aps:0.1"}}) {
    CHECK_THROWS_WITH(SetMaker(model, rules), Contains("calibrated for other weights"));
  }
}

TEST_CASE("rules of an earlier version that mean something else today are refused by name") {
  TrainedModel model = four_classes();
  model.rules.emplace().outdated = {parse_set_rule("conformal:aps:0.1")};
  CHECK_THROWS_WITH(SetMaker(model, {"conformal:aps:0.1"}),
                    Contains("conformal:aps:0.1") && Contains("calibrate it again"));
  CHECK(SetMaker(model, {}).rule_names() == std::vector<std::string>{"top:4"});
}

TEST_CASE("superclasses have the probability of their classes together") {
  TrainedModel model = four_classes();
  const SetMaker maker(model, {"top:1", "error:0.5"}, {.by_superclass = true});
  CHECK(maker.names() == model.card.superclass_names);
  CHECK(members(maker) == Members{1});  // b and d, though a is the best class
  CHECK(members(maker, 1) == Members{1});
  CHECK(maker(scores(), 0)[0][0].probabilities[0] == Approx(0.55));
  CHECK_THROWS_AS(SetMaker(model, {"top:3"}, {.by_superclass = true}), ConfigError);

  model.card.is_sigmoid = true;
  const SetMaker of_sigmoids(model, {"top:1"}, {.by_superclass = true});
  const at::Tensor logits = at::tensor({2.0F, 1.0F, -1.0F, 1.5F}).unsqueeze(0);
  CHECK(of_sigmoids(logits, 0)[0][0].members == Members{0});
  CHECK(of_sigmoids(logits, 0)[0][0].probabilities[0] == Approx(at::sigmoid(logits)[0][0].item<float>()));
  CHECK_THROWS_AS(SetMaker(model, {"error:0.1"}, {.by_superclass = true}), ConfigError);
}

TEST_CASE("other rules answer with the superclasses of their classes") {
  TrainedModel model = four_classes();
  CalibratedRule lac;
  lac.rule = parse_set_rule("conformal:lac:0.1");
  lac.classes = 4;
  lac.thresholds = {-0.38};
  model.rules.emplace().rules = {lac};
  CHECK(members(SetMaker(model, {}, {.by_superclass = true})) == Members{0});
}

TEST_CASE("superclasses that are not there are not asked for") {
  TrainedModel model = four_classes();
  model.card.superclass_names.clear();
  model.card.superclass_of.clear();
  CHECK_THROWS_WITH(SetMaker(model, {}, {.by_superclass = true}), Contains("have no superclasses"));
}

TEST_CASE("sets are rolled up to the nodes that cover them") {
  TrainedModel model = four_classes();
  model.card.taxonomy = superclass_taxonomy(model.card.superclass_names, model.card.superclass_of);
  const SetMaker maker(model, {"top:3"}, {.roll_up = 2});
  const PredictedSet set = maker(scores(), 0)[0][0];
  CHECK(set.members == Members{0, 1, 3});
  REQUIRE(set.nodes.size() == 2);
  CHECK(maker.node_names()[static_cast<size_t>(set.nodes[0])] == "bd");
  CHECK(maker.node_names()[static_cast<size_t>(set.nodes[1])] == "a");
  CHECK(maker.node_ranks()[static_cast<size_t>(set.nodes[0])] == "superclass");
  CHECK(set.node_probabilities[0] == Approx(0.55));
  CHECK(SetsAsJson(maker)({set}).find(
            R"("nodes":["bd","a"],"node_ranks":["superclass","class"],"node_probabilities":[0.5)") !=
        std::string::npos);
  const SetMaker by_one(model, {"top:3"}, {.roll_up = 1});
  CHECK(by_one.node_names()[static_cast<size_t>(by_one(scores(), 0)[0][0].nodes.at(0))] == "all classes");
  CHECK_FALSE(SetMaker(model, {"top:3"}).has_nodes());
  CHECK_THROWS_WITH(SetMaker(four_classes(), {"top:3"}, {.roll_up = 1}), Contains("data.taxonomy"));

  CalibratedRule tree{.rule = parse_set_rule("conformal:tree(nodes=1):0.1"), .classes = 4, .thresholds = {-0.4}};
  tree.tree = model.card.taxonomy.parent;
  model.rules.emplace().rules = {tree};
  const SetMaker of_tree(model, {});
  CHECK(of_tree(scores(), 0)[0][0].members == Members{0});
  CHECK(of_tree(scores(), 0)[0][0].nodes == Members{0});
}

TEST_CASE("at a place sets are rolled up to nodes of the classes that occur there") {
  const test::TemporaryFolder folder;
  TrainedModel model = four_classes();
  model.card.class_names.emplace_back("e");
  model.card.taxonomy =
      make_taxonomy({"species", "genus", "family"}, {{"g", "f"}, {"g", "f"}, {"g", "f"}, {"h", "f"}, {"h", "k"}});
  const at::Tensor given = at::tensor({0.4F, 0.3F, 0.05F, 0.2F, 0.05F}).log().unsqueeze(0);
  const auto answer = [&](const char* list, int64_t most) {
    const SetMaker maker(model, {"top:2"},
                         {.roll_up = most, .only = folder.write("flora.txt", std::string(list)).string()});
    const PredictedSet set = maker(given, 0)[0][0];
    std::vector<std::string> names;
    for (const int64_t node : set.nodes) names.push_back(maker.node_names()[static_cast<size_t>(node)]);
    CHECK(names.size() == set.node_probabilities.size());
    return std::pair(names, set.node_probabilities.at(0));
  };
  using Names = std::vector<std::string>;
  // The family f is a and d alone where b and c do not occur.
  CHECK(answer("a\nd\ne\n", 2) == std::pair(Names{"f"}, 0.6F));
  CHECK(answer("a\nd\ne\n", 1) == std::pair(Names{"f"}, 0.6F));
  CHECK(answer("a\nd\n", 1) == std::pair(Names{"f"}, 0.6F));
  CHECK(answer("a\nb\nd\n", 1) == std::pair(Names{"g"}, 0.7F));
  CHECK(answer("b\ne\n", 1) == std::pair(Names{"all classes of the place"}, 0.35F));
}

TEST_CASE("at a place no set has a class that does not occur") {
  const test::TemporaryFolder folder;
  const std::string only = folder.write("flora.txt", std::string("b\nd\nyew\n")).string(),
                    prior = folder.write("prior.csv", std::string("b,1\nd,3\n")).string();
  TrainedModel model = four_classes();
  CHECK(members(SetMaker(model, {"top:1"}, {.only = only})) == Members{1});
  CHECK(members(SetMaker(model, {"top:4"}, {.only = only})) == Members{1, 3});   // and no more
  CHECK(members(SetMaker(model, {"error:0.5"}, {.only = only})) == Members{1});  // 0.35 of 0.55
  CHECK_THROWS_WITH(SetMaker(model, {"top:1"}, {.prior = prior}), Contains("--only leaves"));
  CHECK_THROWS_AS(SetMaker(model, {"top:1"}, {.only = only, .prior = prior}), ConfigError);
  CHECK_THROWS_AS(SetMaker(model, {"top:1"}, {.by_superclass = true, .only = only}), ConfigError);
  const std::string none = folder.write("none.txt", std::string("yew\n")).string();
  CHECK_THROWS_AS(SetMaker(model, {"top:1"}, {.only = none}), DataError);

  // Three calibration images have labels that occur at the place, with probabilities of .3, .2 and .1.
  CalibratedRule lac{.rule = parse_set_rule("conformal:lac:0.4"), .classes = 4, .thresholds = {-0.1}};
  lac.label_scores = {{-0.5, -0.3, -0.2, -0.1, -0.6}, {0, 1, 3, 3, 2}};
  lac.images = 5;
  model.rules.emplace().rules = {lac, {.rule = parse_set_rule("average:2"), .classes = 4, .thresholds = {0.1}}};
  const SetMaker maker(model, {}, {.only = only});
  CHECK(maker.rule_names() == std::vector<std::string>{"conformal:lac:0.4"});  // average:2 is for no place
  CHECK(members(maker) == Members{1, 3});
  const auto& notes = maker.place_notes();
  const auto said = [&](const char* words) {
    return std::ranges::any_of(notes,
                               [words](const std::string& note) { return note.find(words) != std::string::npos; });
  };
  CHECK(said("2 of the 4 classes"));
  CHECK(said("yew"));
  CHECK(said("is 3 of 5"));
  CHECK_THROWS_WITH(SetMaker(model, {"average:2"}, {.only = only}), Contains("average:2"));
}

TEST_CASE("a place by name has its own rules, on corrected scores") {
  TrainedModel model = four_classes();
  CalibratedRule lac{.rule = parse_set_rule("conformal:lac:0.4"), .classes = 4, .thresholds = {-0.3}};
  lac.label_scores = {{-0.9, -0.8, -0.6, -0.5}, {1, 3, 3, 1}};
  lac.images = 4;
  const double never = -std::numeric_limits<double>::infinity();
  const CalibratedPlace alps{.name = "alps",
                             .source = "'alps.csv'",
                             .prior = {0, 0.25, 0, 0.75},
                             .offsets = {never, 0, never, std::log(3.0)},
                             .rules = {lac}};
  model.rules.emplace().places = {alps};
  model.rules->rules = {{.rule = parse_set_rule("average:2"), .classes = 4, .thresholds = {0.1}}};
  const SetMaker maker(model, {}, {.prior = "alps"});
  CHECK(maker.rule_names() == std::vector<std::string>{"conformal:lac:0.4"});
  const PredictedSet set = maker(scores(), 0).at(0).at(0);
  // The probabilities of b and d, .35 and .2, become .35 and .6, of .95. Images of b weigh 1/2 and of d 3/2: the
  // p-value of d is (3/2 + 1/2 + 3/2) / (4 + 3/2), and that of b is (1/2) / (4 + 1/2).
  REQUIRE(set.members == Members{3});
  CHECK(set.probabilities[0] == Approx(0.6 / 0.95));
  CHECK(members(SetMaker(model, {"top:1"}, {.prior = "alps"})) == Members{3});
  CHECK(members(SetMaker(model, {"top:4"}, {.prior = "alps"})) == Members{3, 1});
  CHECK_THAT(maker.place_notes().front(), Contains("alps") && Contains("'alps.csv'"));
  CHECK_THROWS_WITH(SetMaker(model, {"average:2"}, {.prior = "alps"}),
                    Contains("the place alps") && Contains("--prior alps=FILE"));
  CHECK_THROWS_WITH(SetMaker(model, {}, {.prior = "jura"}), Contains("--prior jura") && Contains("there are: alps"));
  // Without the place the model's own rules answer.
  CHECK(members(SetMaker(model, {})) == Members{0, 1, 3});
}

TEST_CASE("p-values, and images that look like no known class") {
  TrainedModel model = four_classes();
  CalibratedRule lac{.rule = parse_set_rule("conformal:lac:0.4"), .classes = 4, .thresholds = {-0.3}};
  lac.label_scores = {{-0.5, -0.4, -0.3, -0.9}, {0, 1, 3, 2}};
  lac.images = 4;
  model.rules.emplace().rules = {lac};
  const SetMaker maker(model, {"top:2", "conformal:lac:0.4"}, {.p_values = true, .unknown = 0.5});
  const std::vector<PredictedSet> sets = maker(scores(), 0)[0];
  CHECK(sets[0].p_values.empty());
  REQUIRE(sets[1].p_values.size() == 2);
  CHECK(sets[1].p_values[0] == Approx(3.0 / 5));  // .4: two of four images have such a score, or a stranger one
  CHECK(sets[1].p_values[1] == Approx(2.0 / 5));
  CHECK_FALSE(sets[1].is_unknown);
  const SetMaker strict(model, {"conformal:lac:0.4"}, {.unknown = 0.6});
  CHECK(strict(scores(), 0)[0][0].is_unknown);
  CHECK(SetsAsJson(strict)(strict(scores(), 0)[0]).find("\"unknown\":true") != std::string::npos);
  CHECK_THROWS_AS(SetMaker(model, {"top:2"}, {.p_values = true}), ConfigError);
  CHECK_THROWS_WITH(SetMaker(model, {"conformal:lac:0.4"}, {.unknown = 0.1}), Contains("1 / 5"));
  CHECK_THROWS_AS(SetMaker(model, {"top:2"}, {.by_superclass = true, .roll_up = 1}), ConfigError);
}

}  // namespace settrain
