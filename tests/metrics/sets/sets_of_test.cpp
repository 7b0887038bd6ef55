// Sets against a reference that sorts every row and computes the score of every class.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/conformal_scores.h"
#include "metrics/sets/conformal_thresholds.h"
#include "src/core/error.h"
#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr double kAlways = std::numeric_limits<double>::infinity();

/// [images][classes] by the formulas, one class at a time.
struct Reference {
  std::vector<std::vector<DoubleDouble>> scores;
  std::vector<std::vector<double>> ranks;
};

Reference reference_of(const SetRule& rule, const at::Tensor& logits, const std::vector<int64_t>& train_counts,
                       uint64_t seed, SetNoise use) {
  const at::Tensor p = probabilities_of(logits, ProbabilityKind::kSoftmax);
  const at::Tensor order = std::get<1>(at::sort(logits, true, 1, true));
  const auto p_at = p.accessor<double, 2>();
  const auto class_at = order.accessor<int64_t, 2>();
  double total = 0;
  for (const int64_t count : train_counts) total += static_cast<double>(count);
  Reference reference;
  for (int64_t i = 0; i < logits.size(0); ++i) {
    const auto classes = static_cast<size_t>(logits.size(1));
    std::vector<DoubleDouble> scores(classes);
    std::vector<double> ranks(classes), behind(classes);
    double u = rule.score == ConformalScore::kSaps ? 1 : 0;
    if (rule.randomised) u = set_noise(seed, use, i);
    for (size_t r = classes - 1; r > 0; --r) behind[r - 1] = behind[r] + p_at[i][class_at[i][static_cast<int64_t>(r)]];
    for (size_t r = 0; r < classes; ++r) {
      const int64_t category = class_at[i][static_cast<int64_t>(r)];
      const auto c = static_cast<size_t>(category);
      const double p_c = p_at[i][category], o = static_cast<double>(r + 1);
      ranks[c] = o;
      switch (rule.score) {
        case ConformalScore::kLac:
          scores[c] = p_c <= 0.5 ? -p_c : DoubleDouble::sum(-1, behind[0]);
          break;
        case ConformalScore::kAps:
          scores[c] = -(behind[r] + u * p_c);
          break;
        case ConformalScore::kRaps:
          scores[c] =
              DoubleDouble::sum(rule.lambda * std::max(0.0, o - static_cast<double>(rule.k)), -(behind[r] + u * p_c));
          break;
        case ConformalScore::kSaps:
          scores[c] = r == 0 ? DoubleDouble::sum(u - 1, -(u * behind[0]))
                             : DoubleDouble::sum((o - 2 + u) * rule.lambda, -behind[0]);
          break;
        default: {
          const double factor = total / static_cast<double>(train_counts[c]);
          scores[c] = train_counts[c] == 0 ? DoubleDouble(-kAlways)
                      : p_c <= 0.5         ? -(p_c * factor)
                                           : DoubleDouble::sum(-factor, behind[0] * factor);
        }
      }
    }
    reference.scores.push_back(scores);
    reference.ranks.push_back(ranks);
  }
  return reference;
}

at::Tensor reference_sets(const CalibratedRule& rule, const Reference& reference) {
  const auto images = static_cast<int64_t>(reference.scores.size());
  const at::Tensor sets = at::zeros({images, rule.classes}, at::kBool);
  auto set = sets.accessor<bool, 2>();
  for (int64_t i = 0; i < images; ++i) {
    for (int64_t c = 0; c < rule.classes; ++c) {
      const auto at_class = static_cast<size_t>(c);
      const DoubleDouble q = rule.thresholds[rule.thresholds.size() == 1 ? 0 : at_class];
      bool is_in = reference.scores[static_cast<size_t>(i)][at_class] <= q;
      if (!rule.most_ranks.empty()) {
        is_in &= reference.ranks[static_cast<size_t>(i)][at_class] <= static_cast<double>(rule.most_ranks[at_class]);
      }
      set[i][c] = is_in;
    }
  }
  return sets;
}

/// A split whose label is often among the best, with some classes that no label has.
SplitScores fair_split(uint64_t seed, int64_t images, int64_t classes, at::ScalarType dtype, int64_t levels) {
  SplitScores split = test::random_split(seed, images, classes, dtype, levels, std::max<int64_t>(1, classes - 2));
  split.scores.scatter_add_(1, split.labels.unsqueeze(1), at::full({images, 1}, 2, split.scores.options()));
  return split;
}

ClassFacts facts_of(int64_t classes) {
  ClassFacts facts;
  facts.classes = classes;
  for (int64_t c = 0; c < classes; ++c) {
    facts.train_counts.push_back(c % 5 ? 3 * c + 1 : 0);
    facts.superclass_of.push_back(c / 3);
  }
  return facts;
}

const std::vector<std::string> kRules{"conformal:lac:0.2",
                                      "conformal:aps:0.2",
                                      "conformal:aps(randomised=true):0.2",
                                      "conformal:raps(k=2,lambda=0.05):0.2",
                                      "conformal:raps(k=1,randomised=true):0.2",
                                      "conformal:saps:0.2",
                                      "conformal:saps(lambda=0.05,randomised=true):0.2",
                                      "conformal:pas:0.2",
                                      "conformal:lac:0.3:classwise",
                                      "conformal:aps:0.3:classwise",
                                      "conformal:raps:0.3:superclass",
                                      "conformal:lac:0.3:interpolated(0.5)",
                                      "conformal:lac:0.4:rc3p",
                                      "conformal:aps:0.4:rc3p",
                                      "conformal:saps(randomised=true):0.4:rc3p",
                                      "conformal:pas:0.4:rc3p",
                                      "conformal:aps(randomised=true):0.3:clustered(clusters=2,share=0.5)",
                                      "conformal:lac:0.3:fuzzy(0.01)"};

TEST_CASE("sets are those of the formulas, class by class") {
  uint64_t seed = 0;
  for (const int64_t classes : {2, 9, 70}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      for (const int64_t levels : {0, 4}) {
        const SplitScores calibration = fair_split(++seed, 60, classes, dtype, levels);
        const SplitScores judged = fair_split(++seed, 20, classes, dtype, levels);
        const ClassFacts facts = facts_of(classes);
        for (const std::string& name : kRules) {
          CAPTURE(name, classes, dtype, levels);
          const SetRule parsed = parse_set_rule(name);
          const CalibratedRule rule = calibrate(parsed, facts, calibration.scores, calibration.labels, seed);
          const Reference expected =
              reference_of(parsed, judged.scores, facts.train_counts, seed, SetNoise::kJudgedImage);
          CHECK(sets_of(rule, judged.scores).equal(reference_sets(rule, expected)));

          const Reference known =
              reference_of(parsed, calibration.scores, facts.train_counts, seed, SetNoise::kCalibrationImage);
          std::vector<DoubleDouble> label_scores;
          for (size_t i = 0; i < known.scores.size(); ++i) {
            label_scores.push_back(
                known.scores[i][static_cast<size_t>(calibration.labels[static_cast<int64_t>(i)].item<int64_t>())]);
          }
          if (parsed.threshold == ConformalThreshold::kMarginal) {
            CHECK(rule.thresholds.at(0).high ==
                  Approx(conformal_quantile(label_scores, parsed.level).high).margin(1e-13));
          }
        }
      }
    }
  }
}

TEST_CASE("the image that sets a quantile is in its own set") {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const SplitScores split = fair_split(5, 99, 30, dtype, 0);
    for (const char* name :
         {"conformal:lac:0.1", "conformal:aps:0.1", "conformal:raps:0.1", "conformal:saps:0.1", "conformal:pas:0.1"}) {
      CAPTURE(name);
      const CalibratedRule rule = calibrate(parse_set_rule(name), facts_of(30), split.scores, split.labels, 0);
      const at::Tensor holds = sets_of(rule, split.scores).gather(1, split.labels.unsqueeze(1));
      CHECK(holds.sum().item<int64_t>() >= 90);
    }
  }
}

TEST_CASE("an image's set does not depend on the images beside it") {
  for (const auto kind : {ProbabilityKind::kSoftmax, ProbabilityKind::kSigmoid}) {
    const SplitScores split = fair_split(8, 130, 37, at::kFloat, 0);
    for (std::string name : kRules) {
      CAPTURE(name);
      ClassFacts facts = facts_of(37);
      facts.probability = kind;
      const SetRule parsed = parse_set_rule(name);
      const bool sums = parsed.score != ConformalScore::kLac && parsed.score != ConformalScore::kPas;
      if (kind == ProbabilityKind::kSigmoid && sums) continue;
      const CalibratedRule rule = calibrate(parsed, facts, split.scores, split.labels, 3);
      const at::Tensor all = sets_of(rule, split.scores);
      for (const int64_t image : {0, 1, 63, 64, 129}) {
        CHECK(sets_of(rule, split.scores.narrow(0, image, 1), image).equal(all.narrow(0, image, 1)));
      }
      CHECK(sets_of(rule, split.scores.t().contiguous().t()).equal(all));
    }
  }
}

TEST_CASE("sets grow as alpha falls") {
  const SplitScores calibration = fair_split(2, 200, 12, at::kFloat, 0), judged = fair_split(3, 50, 12, at::kFloat, 0);
  for (const char* start : {"conformal:lac:", "conformal:aps:", "conformal:raps:", "conformal:saps:", "conformal:pas:",
                            "conformal:aps(randomised=true):", "error:", "average-error:"}) {
    for (const char* end : {"", ":classwise", ":superclass", ":fuzzy(0.01)"}) {
      if (*end && std::string(start).starts_with("conformal") == false) continue;
      at::Tensor larger;
      for (const char* alpha : {"0.004", "0.05", "0.1", "0.3", "0.8"}) {
        const std::string name = start + std::string(alpha) + end;
        CAPTURE(name);
        const auto rule = calibrate(parse_set_rule(name), facts_of(12), calibration.scores, calibration.labels, 1);
        const at::Tensor sets = sets_of(rule, judged.scores);
        if (larger.defined()) CHECK(sets.logical_and(larger.logical_not()).sum().item<int64_t>() == 0);
        larger = sets;
      }
    }
  }
}

TEST_CASE("scores that no rule can judge are refused") {
  const SplitScores split = fair_split(1, 20, 4, at::kFloat, 0);
  const CalibratedRule rule =
      calibrate(parse_set_rule("conformal:lac:0.1"), facts_of(4), split.scores, split.labels, 0);
  CHECK_THROWS_AS(sets_of(rule, at::zeros({3, 5})), ShapeError);
  CHECK_THROWS_AS(sets_of(rule, at::zeros({3, 4}, at::kLong)), ShapeError);
  CHECK_THROWS_AS(sets_of(rule, at::full({3, 4}, std::nan(""))), NumericalError);
}

// The thresholds are scores of these images, so that each set of one of them is decided by the last bit.
TEST_CASE("sets of float32 scores are those of the same numbers in float64") {
  at::manual_seed(8);
  for (const double deviation : {1.0, 4.0, 40.0}) {
    const at::Tensor scores = at::randn({400, 130}).mul(deviation), labels = at::randint(130, {400}, at::kLong);
    ClassFacts facts{.classes = 130};
    for (int64_t c = 0; c < 130; ++c) facts.train_counts.push_back(1 + c);
    for (const char* rule : {"conformal:lac:0.1", "conformal:lac:0.9", "conformal:lac:0.5:classwise",
                             "conformal:pas:0.2", "average:5", "average-error:0.4"}) {
      CAPTURE(deviation, rule);
      const CalibratedRule calibrated = calibrate(parse_set_rule(rule), facts, scores, labels, 1);
      CHECK(sets_of(calibrated, scores).equal(sets_of(calibrated, scores.to(at::kDouble))));
    }
  }
}

// A limit of ranks that leaves nothing out has the classes put into an order.
TEST_CASE("sets of aps with a threshold for each class are the same by a histogram as by the order") {
  at::manual_seed(9);
  for (const double deviation : {0.0, 0.5, 3.0, 100.0}) {
    for (const char* name : {"conformal:aps:0.1:classwise", "conformal:aps(randomised=true):0.3:classwise",
                             "conformal:aps:0.02:fuzzy(0.01)"}) {
      CAPTURE(deviation, name);
      const at::Tensor scores = at::randn({600, 90}).mul(deviation), labels = at::randint(90, {600}, at::kLong);
      scores.slice(0, 200).mul_(4).round_().div_(4);  // many are equal
      ClassFacts facts{.classes = 90};
      for (int64_t c = 0; c < 90; ++c) facts.train_counts.push_back(1 + c);
      CalibratedRule rule = calibrate(parse_set_rule(name), facts, scores, labels, 1);
      REQUIRE(rule.thresholds.size() == 90);
      rule.thresholds[3] = -kAlways;
      rule.thresholds[4] = kAlways;
      CalibratedRule ordered = rule;
      ordered.most_ranks.assign(90, 90);
      const at::Tensor sets = sets_of(rule, scores);
      CHECK(sets.equal(sets_of(ordered, scores)));
      CHECK_FALSE(sets.select(1, 3).any().item<bool>());
      CHECK(sets.select(1, 4).all().item<bool>());
    }
  }
}

}  // namespace
}  // namespace settrain
