// The guarantees, on draws of exchangeable images.
#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/conformal_thresholds.h"
#include "metrics/sets/set_quality.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr int64_t kDraws = 1000, kCalibration = 60, kJudged = 30, kClasses = 4;
constexpr double kAlpha = 0.2;

/// Covered labels against what is expected of them, over draws.
struct Tally {
  double covered = 0, expected = 0, variance = 0;

  /// `judged` images after `calibrated` ones: the number covered is beta-binomial where scores are continuous.
  void add(int64_t calibrated, int64_t judged, int64_t found) {
    const auto n = static_cast<double>(judged), all = static_cast<double>(calibrated) + 1;
    const double m = std::min(all, static_cast<double>(conformal_rank(calibrated, kAlpha)));
    covered += static_cast<double>(found);
    expected += n * m / all;
    variance += n * m * (all - m) * (all + n) / (all * all * (all + 1));
  }

  double errors_off() const { return (covered - expected) / std::sqrt(variance); }
};

/// A tally for each group of labels, by a rule that calibrates on the group's own images.
std::map<int64_t, Tally> tallies(const std::string& name, const std::vector<int64_t>& group_of) {
  ClassFacts facts;
  facts.classes = kClasses;
  facts.train_counts = {8, 4, 2, 1};
  facts.superclass_of = {0, 0, 1, 1};
  const SetRule rule = parse_set_rule(name);
  at::manual_seed(17);
  const at::Tensor scores = at::randn({kDraws, kCalibration + kJudged, kClasses}, at::kDouble).mul(1.5);
  // Gumbel noise of half the size that would make the probabilities right, and a long tail.
  const at::Tensor noise = at::rand(scores.sizes(), at::kDouble).log().neg().log().neg().mul(0.5);
  const at::Tensor labels = scores.add(noise).sub(at::arange(kClasses).mul(0.3)).argmax(2);
  std::map<int64_t, Tally> found;
  for (int64_t draw = 0; draw < kDraws; ++draw) {
    const at::Tensor s = scores[draw], y = labels[draw];
    const CalibratedRule calibrated =
        calibrate(rule, facts, s.narrow(0, 0, kCalibration), y.narrow(0, 0, kCalibration), static_cast<uint64_t>(draw));
    const at::Tensor sets = sets_of(calibrated, s.narrow(0, kCalibration, kJudged));
    const bool* set = sets.const_data_ptr<bool>();
    const auto* label = y.const_data_ptr<int64_t>();
    std::map<int64_t, std::array<int64_t, 3>> counts;
    for (int64_t i = 0; i < kCalibration + kJudged; ++i) {
      auto& [known, judged, covered] = counts[group_of[static_cast<size_t>(label[i])]];
      if (i < kCalibration) {
        ++known;
      } else {
        ++judged;
        covered += set[(i - kCalibration) * kClasses + label[i]];
      }
    }
    for (const auto& [group, count] : counts) found[group].add(count[0], count[1], count[2]);
  }
  return found;
}

TEST_CASE("the mean coverage is the quantile's, over all images, a class or a superclass") {
  const std::vector<int64_t> all{0, 0, 0, 0}, classes{0, 1, 2, 3}, superclasses{0, 0, 1, 1};
  struct Guarantee {
    std::string name;
    std::vector<int64_t> group_of;
  };
  for (const auto& [name, group_of] : std::vector<Guarantee>{{"conformal:lac:0.2", all},
                                                             {"conformal:aps(randomised=true):0.2", all},
                                                             {"conformal:raps(k=1,randomised=true):0.2", all},
                                                             {"conformal:saps:0.2", all},
                                                             {"conformal:saps(randomised=true):0.2", all},
                                                             {"conformal:pas:0.2", all},
                                                             {"conformal:lac:0.2:classwise", classes},
                                                             {"conformal:aps(randomised=true):0.2:classwise", classes},
                                                             {"conformal:lac:0.2:superclass", superclasses}}) {
    for (const auto& [group, tally] : tallies(name, group_of)) {
      CAPTURE(name, group, tally.covered, tally.expected);
      CHECK(std::abs(tally.errors_off()) < 4);
    }
  }
}

TEST_CASE("fuzzy thresholds cover at least as often as promised") {
  const Tally tally = tallies("conformal:lac:0.2:fuzzy(0.01,share=0.5)", {0, 0, 0, 0}).at(0);
  const double judged = kDraws * kJudged;
  CHECK(tally.covered / judged > 1 - kAlpha - 0.005);
  CHECK(tally.covered / judged < 0.87);
}

TEST_CASE("an answer by nodes of a tree of three ranks holds the label as often as is promised") {
  constexpr int64_t kSpecies = 12;
  std::vector<std::vector<std::string>> paths;
  for (int64_t c = 0; c < kSpecies; ++c)
    paths.push_back({std::string(1, static_cast<char>('a' + c / 2)), std::string(1, static_cast<char>('A' + c / 6))});
  const ClassFacts facts{.classes = kSpecies, .taxonomy = make_taxonomy({"species", "genus", "family"}, paths)};
  for (const int64_t nodes : {1, 3}) {
    const SetRule rule = parse_set_rule("conformal:tree(nodes=" + std::to_string(nodes) + "):0.2");
    at::manual_seed(23);
    const at::Tensor scores = at::randn({kDraws, kCalibration + kJudged, kSpecies}, at::kDouble).mul(1.5);
    const at::Tensor labels =
        scores.add(at::rand(scores.sizes(), at::kDouble).log().neg().log().neg().mul(0.7)).argmax(2);
    Tally tally;
    for (int64_t draw = 0; draw < kDraws; ++draw) {
      const at::Tensor s = scores[draw], y = labels[draw];
      const CalibratedRule calibrated =
          calibrate(rule, facts, s.narrow(0, 0, kCalibration), y.narrow(0, 0, kCalibration), 0);
      const SetOutcomes outcomes =
          outcomes_of(sets_of(calibrated, s.narrow(0, kCalibration, kJudged)), y.narrow(0, kCalibration, kJudged));
      tally.add(kCalibration, kJudged, outcomes.has_label.sum().item<int64_t>());
    }
    // At least so much, since classes of one node have the same score.
    CHECK(tally.errors_off() > -3);
  }
}

}  // namespace
}  // namespace settrain
