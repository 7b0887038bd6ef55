#include "metrics/sets/calibrate.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Probabilities that a softmax in float64 gives back but for rounding.
at::Tensor logits_of(const std::vector<double>& probabilities, int64_t classes) {
  return at::tensor(probabilities, at::kDouble).view({-1, classes}).log();
}

at::Tensor labels_of(const std::vector<int64_t>& labels) {
  return at::tensor(labels, at::kLong);
}

ClassFacts three_classes() {
  ClassFacts facts;
  facts.classes = 3;
  facts.train_counts = {5, 4, 1};
  facts.superclass_of = {0, 0, 1};
  return facts;
}

// The labels have probabilities .5, .3, .2 and ranks 1, 2, 3.
const at::Tensor& scores() {
  static const at::Tensor scores = logits_of({.5, .3, .2, .6, .3, .1, .45, .35, .2}, 3);
  return scores;
}
const at::Tensor& labels() {
  static const at::Tensor labels = labels_of({0, 1, 2});
  return labels;
}

double threshold(const std::string& name) {
  const CalibratedRule rule = calibrate(parse_set_rule(name), three_classes(), scores(), labels(), 0);
  REQUIRE(rule.thresholds.size() == 1);
  return rule.thresholds[0].high;
}

at::Tensor set_of(const CalibratedRule& rule, const std::vector<double>& probabilities) {
  return sets_of(rule, logits_of(probabilities, rule.classes))[0].to(at::kLong);
}

TEST_CASE("thresholds of each score, by hand") {
  // alpha 0.5 takes the second smallest score of three images, 0.25 the largest, 0.75 the smallest. All scores but
  // those of pas are stored minus 1.
  CHECK(threshold("conformal:lac:0.75") == Approx(0.5 - 1));
  CHECK(threshold("conformal:lac:0.5") == Approx(0.7 - 1));
  CHECK(threshold("conformal:lac:0.25") == Approx(0.8 - 1));
  CHECK(threshold("conformal:aps:0.75") == Approx(0.5 - 1));
  CHECK(threshold("conformal:aps:0.5") == Approx(0.9 - 1));
  CHECK(threshold("conformal:aps:0.25") == Approx(0).margin(1e-12));
  CHECK(threshold("conformal:raps(lambda=0.5,k=1):0.75") == Approx(0.5 - 1));
  CHECK(threshold("conformal:raps(lambda=0.5,k=1):0.5") == Approx(1.4 - 1));
  CHECK(threshold("conformal:raps(lambda=0.5,k=1):0.25") == Approx(2.0 - 1));
  CHECK(threshold("conformal:saps(lambda=0.5):0.75") == Approx(0.5 - 1));
  CHECK(threshold("conformal:saps(lambda=0.5):0.5") == Approx(1.1 - 1));
  CHECK(threshold("conformal:saps(lambda=0.5):0.25") == Approx(1.45 - 1));
  // p / pi of the labels: .5 / .5, .3 / .4, .2 / .1.
  CHECK(threshold("conformal:pas:0.75") == Approx(-2));
  CHECK(threshold("conformal:pas:0.5") == Approx(-1));
  CHECK(threshold("conformal:pas:0.25") == Approx(-0.75));
  CHECK(threshold("conformal:lac:0.24") == kInfinity);
}

TEST_CASE("thresholds of the rules without a conformal score, by hand") {
  CHECK(threshold("average-error:0.3") == Approx(0.2));  // no label may be lost
  CHECK(threshold("average-error:0.34") == Approx(0.3));
  CHECK(threshold("average-error:0.67") == Approx(0.5));
  CHECK(threshold("average:1") == Approx((0.45 + 0.35) / 2));
}

TEST_CASE("ties that make the sets of average:K larger are told") {
  const auto notes = [](const at::Tensor& rows) {
    return calibrate(parse_set_rule("average:1"), three_classes(), rows, labels_of({0, 1, 2}), 0).notes;
  };
  CHECK(notes(scores()).empty());
  const auto told = notes(logits_of({.4, .4, .2, .4, .4, .2, .4, .4, .2}, 3));
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], Catch::Contains("2.00 classes on average instead of 1"));
}

TEST_CASE("average-error loses no more labels than it may") {
  at::manual_seed(1);
  for (const double error : {0.1, 0.25, 0.5}) {
    const at::Tensor logits = at::randn({40, 6}), y = at::randint(6, {40}, at::kLong);
    ClassFacts facts;
    facts.classes = 6;
    SetRule parsed = parse_set_rule("average-error:0.1");
    parsed.level = error;
    const CalibratedRule rule = calibrate(parsed, facts, logits, y, 0);
    CHECK(sets_of(rule, logits).gather(1, y.unsqueeze(1)).logical_not().sum().item<int64_t>() ==
          static_cast<int64_t>(error * 40));
  }
}

TEST_CASE("sets of the rules without a conformal score, by hand") {
  const ClassFacts facts = three_classes();
  const auto set = [&](const std::string& name, const std::vector<double>& p) {
    return set_of(calibrate(parse_set_rule(name), facts, scores(), labels(), 0), p);
  };
  CHECK(set("top:1", {.2, .5, .3}).equal(labels_of({0, 1, 0})));
  CHECK(set("top:2", {.2, .4, .4}).equal(labels_of({0, 1, 1})));
  CHECK(set("top:1", {.2, .4, .4}).equal(labels_of({0, 1, 0})));
  CHECK(set("error:0.45", {.2, .5, .3}).equal(labels_of({0, 1, 1})));
  CHECK(set("error:0.55", {.2, .5, .3}).equal(labels_of({0, 1, 0})));
  CHECK(set("error:0.1", {.2, .5, .3}).equal(labels_of({1, 1, 1})));
  CHECK(set("average-error:0.34", {.29, .31, .4}).equal(labels_of({0, 1, 1})));
  CHECK(set("average:1", {.39, .41, .2}).equal(labels_of({0, 1, 0})));
  CHECK(calibrate(parse_set_rule("top:2"), facts, {}, {}, 0).images == 0);
}

TEST_CASE("an error of as much as the classes that are left out have is allowed, however sums are rounded") {
  ClassFacts facts;
  for (const int64_t classes : {10, 20}) {
    facts.classes = classes;
    for (int64_t out = 0; out < classes; ++out) {
      const double error = static_cast<double>(out) / static_cast<double>(classes);
      SetRule rule = parse_set_rule("error:0.1");
      rule.level = error;
      const at::Tensor sets = sets_of(calibrate(rule, facts, {}, {}, 0), at::zeros({1, classes}, at::kDouble));
      CHECK(sets.sum().item<int64_t>() == classes - out);
    }
  }
}

TEST_CASE("each class, superclass and rank has its own threshold") {
  const at::Tensor y = labels_of({0, 0, 2}), logits = logits_of({.5, .3, .2, .3, .6, .1, .45, .35, .2}, 3);
  const auto calibrated = [&](const std::string& name) {
    return calibrate(parse_set_rule(name), three_classes(), logits, y, 0);
  };
  const CalibratedRule classwise = calibrated("conformal:lac:0.5:classwise");
  CHECK(classwise.thresholds[0].high == Approx(-0.3));
  CHECK(classwise.thresholds[1] == kInfinity);
  CHECK(classwise.thresholds[2].high == Approx(-0.2));
  CHECK_THAT(classwise.notes.at(0), Catch::Contains("1 of 3 classes") && Catch::Contains(" 1 calibration images"));
  CHECK(set_of(classwise, {.29, .6, .11}).equal(labels_of({0, 1, 0})));
  CHECK(set_of(classwise, {.31, .01, .68}).equal(labels_of({1, 1, 1})));

  const CalibratedRule superclass = calibrated("conformal:lac:0.5:superclass");
  CHECK(superclass.thresholds[1] == superclass.thresholds[0]);
  CHECK(superclass.thresholds[0].high == Approx(-0.3));

  const CalibratedRule interpolated = calibrated("conformal:lac:0.5:interpolated(0.25)");
  CHECK(interpolated.thresholds[0].high == Approx(0.25 * -0.3 + 0.75 * -0.3));
  CHECK(interpolated.thresholds[1].high == Approx(0.75 * -0.3));
  CHECK((calibrated("conformal:lac:0.1:interpolated(1)").thresholds == std::vector<DoubleDouble>{0, 0, 0}));
  CHECK(calibrated("conformal:lac:0.1:interpolated(0.5)").thresholds[0] == kInfinity);

  // Half of class 0's labels have a rank above 1: k = 1 at alpha 0.6, at level 0.1, which two images do not reach.
  const CalibratedRule ranks = calibrated("conformal:lac:0.6:rc3p");
  CHECK(ranks.most_ranks == std::vector<int64_t>{1, 3, 3});
  CHECK(ranks.thresholds[0] == kInfinity);
  CHECK(ranks.thresholds[2].high == Approx(-0.2));
  CHECK(set_of(ranks, {.4, .5, .1}).equal(labels_of({0, 1, 0})));
  CHECK(set_of(ranks, {.5, .3, .2}).equal(labels_of({1, 1, 1})));
  CHECK(calibrated("conformal:lac:0.5:rc3p").most_ranks[0] == 2);
}

TEST_CASE("classes without training images are in every set of pas") {
  ClassFacts facts = three_classes();
  facts.train_counts = {5, 0, 5};
  const CalibratedRule rule = calibrate(parse_set_rule("conformal:pas:0.5"), facts, scores(), labels(), 0);
  CHECK_THAT(rule.notes.at(0), Catch::Contains("1 of 3 classes"));
  CHECK(set_of(rule, {.9, 1e-300, .1}).equal(labels_of({1, 1, 0})));
}

TEST_CASE("wpas multiplies by the weights of a file") {
  const test::TemporaryFolder folder;
  const std::string file = (folder.path() / "weights.csv").string();
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  write("a,1\nc,2.5\nb,0\n");
  ClassFacts facts = three_classes();
  facts.names = {"a", "b", "c"};
  const SetRule parsed = parse_set_rule("conformal:wpas(weights=" + file + "):0.5");
  CHECK(calibrate(parsed, facts, scores(), labels(), 0).class_factor == std::vector<double>{2, 0, 25});
  facts.names.clear();
  CHECK_THROWS_WITH(calibrate(parsed, facts, scores(), labels(), 0), Catch::Contains("weights.csv:2"));
  write("0,1\n1,1\n2,-1\n");
  CHECK_THROWS_AS(calibrate(parsed, facts, scores(), labels(), 0), DataError);
  CHECK_THROWS_WITH(calibrate(parsed, facts, scores(), labels(), 0), Catch::Contains("class '2'"));
  write("0,1\n1,1\n2,3\n");
  CHECK(calibrate(parsed, facts, scores(), labels(), 0).class_factor == std::vector<double>{2, 2.5, 30});
}

TEST_CASE("too few images for alpha give full sets, and a note says how many it takes") {
  const CalibratedRule rule = calibrate(parse_set_rule("conformal:aps:0.1"), three_classes(), scores(), labels(), 0);
  CHECK(rule.notes ==
        std::vector<std::string>{"alpha 0.1 needs 9 calibration images, there are 3: every set holds all classes"});
  CHECK(set_of(rule, {.98, .01, .01}).equal(labels_of({1, 1, 1})));
}

TEST_CASE("randomised sets follow the seed and the image's number") {
  at::manual_seed(2);
  const at::Tensor logits = at::randn({64, 8}), y = at::randint(8, {64}, at::kLong);
  ClassFacts facts;
  facts.classes = 8;
  const auto sets = [&](uint64_t seed, int64_t first) {
    return sets_of(calibrate(parse_set_rule("conformal:aps(randomised=true):0.3"), facts, logits, y, seed), logits,
                   first);
  };
  CHECK(sets(1, 0).equal(sets(1, 0)));
  CHECK_FALSE(sets(1, 0).equal(sets(1, 1)));
  CHECK_FALSE(sets(1, 0).equal(sets(2, 0)));
  CHECK_FALSE(sets(1, 0).equal(sets(1, int64_t{1} << 32)));
}

TEST_CASE("what a rule cannot use is refused, and the rule named") {
  struct Refusal {
    std::string name, part;
    ClassFacts facts = three_classes();
  };
  std::vector<Refusal> refusals{{"top:4", "number of classes, 3"},
                                {"average:3.5", "number of classes, 3"},
                                {"conformal:pas:0.1", "numbers of training images"},
                                {"conformal:lac:0.1:fuzzy(1)", "numbers of training images"},
                                {"conformal:lac:0.1:superclass", "superclasses"},
                                {"error:0.1", "sigmoid"},
                                {"conformal:aps:0.1", "sigmoid"},
                                {"conformal:raps:0.1:classwise", "sigmoid"},
                                {"conformal:saps:0.1", "sigmoid"}};
  for (Refusal& refusal : refusals) {
    if (refusal.part == "sigmoid") refusal.facts.probability = ProbabilityKind::kSigmoid;
    if (refusal.part == "superclasses") refusal.facts.superclass_of.clear();
    if (refusal.part == "numbers of training images") refusal.facts.train_counts.clear();
    CAPTURE(refusal.name);
    const auto attempt = [&] { calibrate(parse_set_rule(refusal.name), refusal.facts, scores(), labels(), 0); };
    CHECK_THROWS_AS(attempt(), ConfigError);
    CHECK_THROWS_WITH(attempt(), Catch::Contains("rule '" + refusal.name + "'") && Catch::Contains(refusal.part));
  }
  const SetRule lac = parse_set_rule("conformal:lac:0.1");
  CHECK_THROWS_AS(calibrate(lac, three_classes(), scores(), labels_of({0, 1, 3}), 0), ShapeError);
  CHECK_THROWS_AS(calibrate(lac, three_classes(), scores().mul(std::nan("")), labels(), 0), NumericalError);
  CHECK_THROWS_AS(calibrate(lac, three_classes(), at::zeros({3, 4}), labels(), 0), ShapeError);
  CHECK_THROWS_AS(calibrate(lac, three_classes(), at::zeros({0, 3}), labels_of({}), 0), ShapeError);
  ClassFacts wrong = three_classes();
  wrong.train_counts.pop_back();
  CHECK_THROWS_AS(calibrate(lac, wrong, scores(), labels(), 0), ShapeError);
}

TEST_CASE("every guarantee says what holds or that nothing does") {
  const auto guarantee = [](const std::string& name) {
    return calibrate(parse_set_rule(name), three_classes(), scores(), labels(), 0).guarantee;
  };
  for (const char* name : {"top:2", "average:2", "error:0.1", "average-error:0.1", "conformal:lac:0.1:rc3p"}) {
    CHECK_THAT(guarantee(name), Catch::StartsWith("no guarantee: "));
  }
  CHECK_THAT(guarantee("conformal:lac:0.1:interpolated(0.5)"),
             Catch::Contains("probability at least 0.8") && Catch::Contains("0.9 is not guaranteed"));
  for (const char* name : {"conformal:lac:0.1", "conformal:aps:0.1:classwise", "conformal:lac:0.1:superclass",
                           "conformal:lac:0.1:clustered", "conformal:pas:0.1:fuzzy(1)"}) {
    CHECK_THAT(guarantee(name), Catch::Contains("probability at least 0.9") && Catch::Contains("chose nothing before"));
  }
}

/// Genera of three, two and one species, and families of the first two genera and of the last.
Taxonomy species() {
  return make_taxonomy({"species", "genus", "family"},
                       {{"A", "X"}, {"A", "X"}, {"A", "X"}, {"B", "X"}, {"B", "X"}, {"C", "Y"}});
}

TEST_CASE("the score tree is the probability of the first answer by so many nodes that holds the label, by hand") {
  const ClassFacts facts{.classes = 6, .taxonomy = species()};
  // The order of the classes is 0, 3, 1, 5, 4, 2.
  const std::vector<double> p{.35, .15, .06, .2, .09, .15};
  const auto score = [&](int64_t nodes, int64_t label) {
    const SetRule rule = parse_set_rule(fmt::format("conformal:tree(nodes={}):0.5", nodes));
    return calibrate(rule, facts, logits_of(p, 6), labels_of({label}), 0).thresholds[0].high + 1;
  };
  // By one node: species 0, the family of 0 and 3, and then, for 5, all.
  const std::vector<double> by_one{.35, .85, .85, .85, .85, 1};
  // By two: {0}, {0, 3}, genus A and 3 rather than the family, whose other species are not wanted; X and 5.
  const std::vector<double> by_two{.35, .76, .76, .55, 1, 1};
  for (int64_t label = 0; label < 6; ++label) {
    CHECK(score(1, label) == Approx(by_one[static_cast<size_t>(label)]));
    CHECK(score(2, label) == Approx(by_two[static_cast<size_t>(label)]));
  }
  CalibratedRule rule =
      calibrate(parse_set_rule("conformal:tree(nodes=2):0.5"), facts, logits_of(p, 6), labels_of({1}), 0);
  CHECK(at::equal(set_of(rule, p), labels_of({1, 1, 1, 1, 0, 0})));
  rule.thresholds = {0.5 - 1};
  CHECK(at::equal(set_of(rule, p), labels_of({1, 0, 0, 0, 0, 0})));
  rule.thresholds = {0.3 - 1};
  CHECK(at::equal(set_of(rule, p), labels_of({0, 0, 0, 0, 0, 0})));
  rule.thresholds = {kInfinity};
  CHECK(at::equal(set_of(rule, p), labels_of({1, 1, 1, 1, 1, 1})));
  CHECK_THROWS_WITH(calibrate(rule.rule, {.classes = 6}, logits_of(p, 6), labels_of({1}), 0),
                    Catch::Contains("data.taxonomy"));
  CHECK_THROWS_AS(calibrate(rule.rule, {.classes = 6, .taxonomy = species(), .probability = ProbabilityKind::kSigmoid},
                            logits_of(p, 6), labels_of({1}), 0),
                  ConfigError);
}

TEST_CASE("an answer of the score tree is nodes: the classes whose score is at most the threshold") {
  const ClassFacts facts{.classes = 6, .taxonomy = species()};
  at::manual_seed(3);
  const at::Tensor images = at::randn({40, 6}, at::kDouble).mul(2);
  for (const int64_t nodes : {1, 2, 3}) {
    const SetRule rule = parse_set_rule(fmt::format("conformal:tree(nodes={}):0.3", nodes));
    const CalibratedRule calibrated = calibrate(rule, facts, images, images.argmin(1), 0);
    const at::Tensor sets = sets_of(calibrated, images);
    const NodeCover tree(species().parent, 6);
    for (int64_t i = 0; i < images.size(0); ++i) {
      for (int64_t c = 0; c < 6; ++c) {
        const CalibratedRule own =
            calibrate(rule, facts, images.narrow(0, i, 1).repeat({3, 1}), labels_of({c, c, c}), 0);
        CHECK(sets[i][c].item<bool>() == (own.thresholds[0] <= calibrated.thresholds[0]));
      }
      CHECK(std::ssize(tree.exactly(sets[i].const_data_ptr<bool>())) <= nodes);
    }
    CHECK(at::equal(sets_of(calibrated, images.to(at::kFloat).to(at::kDouble)),
                    sets_of(calibrated, images.to(at::kFloat))));
  }
}

}  // namespace
}  // namespace settrain
