// Coverage where a network is sure: probabilities of 0 and 1 to the last digit of a float, and of a double.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/conformal_thresholds.h"
#include "metrics/sets/rule_metrics.h"
#include "metrics/sets/rules/stored_rules.h"
#include "metrics/sets/score_rows.h"
#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

constexpr int64_t kImageCount = 1500, kClassCount = 12;

/// Normal logits times `scale`; about two labels in three have the largest. No logit of a scale up to 100 lies more
/// than 708 below another, where its probability would be 0 even in float64.
SplitScores confident_split(uint64_t seed, double scale, at::ScalarType dtype) {
  at::manual_seed(seed);
  SplitScores split;
  split.labels = at::randint(kClassCount, {kImageCount}, at::kLong);
  at::Tensor logits = at::randn({kImageCount, kClassCount}, at::kDouble).clamp(-2.2, 2.2);
  logits.scatter_add_(1, split.labels.unsqueeze(1), at::rand({kImageCount, 1}, at::kDouble).mul(1.6).add(1));
  split.scores = logits.mul(scale).to(dtype);
  return split;
}

ClassFacts some_facts() {
  ClassFacts facts;
  facts.classes = kClassCount;
  for (int64_t c = 0; c < kClassCount; ++c) {
    facts.train_counts.push_back(c < 4 ? 100 : 7 + c);
    facts.superclass_of.push_back(c / 4);
  }
  return facts;
}

/// How far the number of covered images is from what is expected, in standard deviations: with continuous scores it is
/// beta-binomial.
double deviations(double coverage, int64_t calibrated, int64_t judged, double alpha) {
  const auto n = static_cast<double>(judged), all = static_cast<double>(calibrated) + 1;
  const double m = std::min(all, static_cast<double>(conformal_rank(calibrated, alpha)));
  const double deviation = std::sqrt(n * m * (all - m) * (all + n) / (all * all * (all + 1)));
  return (coverage * n - n * m / all) / deviation;
}

constexpr double kMost = 4;  // deviations; the draws are the same in every run

std::vector<std::string> every_score(const std::string& weights) {
  return {"lac",
          "aps",
          "aps(randomised=true)",
          "raps",
          "raps(randomised=true)",
          "saps",
          "saps(randomised=true)",
          "pas",
          "wpas(weights=" + weights + ")"};
}

class WeightsFile {
 public:
  WeightsFile() {
    std::ofstream file(path());
    for (int64_t c = 0; c < kClassCount; ++c) file << c << "," << 1 + c % 3 << "\n";
  }
  std::string path() const { return (folder_.path() / "weights.csv").string(); }

 private:
  test::TemporaryFolder folder_;
};

TEST_CASE("coverage follows alpha however sure the network is") {
  const WeightsFile weights;
  for (const double scale : {1.0, 10.0, 100.0, 1e4}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      const SplitScores calibration = confident_split(1, scale, dtype), judged = confident_split(2, scale, dtype);
      for (const std::string& score : every_score(weights.path())) {
        int64_t last_size = 0;
        for (const char* alpha : {"0.3", "0.1", "0.05", "0.01"}) {
          const SetRule rule = parse_set_rule("conformal:" + score + ":" + alpha);
          const CalibratedRule calibrated =
              calibrate(rule, some_facts(), calibration.scores, calibration.labels, /*seed=*/3);
          const at::Tensor sets = sets_of(calibrated, judged.scores);
          const double coverage = sets.gather(1, judged.labels.unsqueeze(1)).to(at::kDouble).mean().item<double>();
          const double off = deviations(coverage, kImageCount, kImageCount, rule.level);
          CAPTURE(rule.name(), scale, dtype, coverage);
          CHECK(std::abs(off) < kMost);
          const auto size = sets.sum().item<int64_t>();  // grows as alpha falls
          CHECK(size > last_size);
          last_size = size;
        }
      }
    }
  }
}

TEST_CASE("sets stay as large where float64 has no probabilities any more") {
  for (const char* name : {"conformal:aps:0.1", "conformal:raps(k=3):0.1", "conformal:aps:0.2:classwise",
                           "conformal:lac:0.4", "conformal:aps(randomised=true):0.2"}) {
    const auto mean_size = [&](double scale) {
      const SplitScores calibration = confident_split(3, scale, at::kDouble);
      const CalibratedRule rule =
          calibrate(parse_set_rule(name), some_facts(), calibration.scores, calibration.labels, 0);
      return sets_of(rule, confident_split(4, scale, at::kDouble).scores).to(at::kDouble).sum(1).mean().item<double>();
    };
    CAPTURE(name);
    for (const double scale : {300.0, 1e4, 1e7}) CHECK(mean_size(scale) == Approx(mean_size(60)).epsilon(0.01));
  }
}

TEST_CASE("weights of classes change logarithms where float64 has no probabilities any more") {
  ClassFacts facts = some_facts();
  facts.train_counts.assign(kClassCount, 1);
  facts.train_counts[3] = 1000;
  const SplitScores calibration = confident_split(3, 1e4, at::kDouble);
  const SetRule pas = parse_set_rule("conformal:pas:0.2"), lac = parse_set_rule("conformal:lac:0.2");
  const auto sets = [&](const SetRule& rule) {
    const SplitScores judged = confident_split(4, 1e4, at::kDouble);
    return sets_of(calibrate(rule, facts, calibration.scores, calibration.labels, 0), judged.scores);
  };
  // The logarithm of a factor of 1000 is nothing beside logits that are thousands apart.
  const double differing = sets(pas).ne(sets(lac)).any(1).to(at::kDouble).mean().item<double>();
  CHECK(differing < 0.01);
}

TEST_CASE("images with the same logits in another order have the same sets in that order") {
  at::manual_seed(1);
  const at::Tensor levels = at::tensor({2.0F, 1.0F, 0.0F, 0.25F}).repeat({400, 1});
  const at::Tensor order = at::rand({400, 4}).argsort(int64_t{1}, false);
  SplitScores split{levels.gather(1, order), at::empty({400}, at::kLong)};
  for (int64_t i = 0; i < 400; ++i) split.labels[i] = i % 10 < 7 ? split.scores[i].argmax() : at::scalar_tensor(i % 4);
  ClassFacts facts;
  facts.classes = 4;
  facts.train_counts.assign(4, 100);
  for (const char* name : {"conformal:lac:0.1", "conformal:lac:0.2", "conformal:aps:0.1", "conformal:aps:0.2",
                           "conformal:raps:0.2", "average:2.5", "average-error:0.2"}) {
    CAPTURE(name);
    const CalibratedRule rule = calibrate(parse_set_rule(name), facts, split.scores, split.labels, 0);
    const at::Tensor by_level = sets_of(rule, split.scores).gather(1, order.argsort(int64_t{1}, false));
    CHECK(by_level.eq(by_level[0]).all().item<bool>());
  }
}

TEST_CASE("classes, superclasses, clusters and rare classes are covered however sure the network is") {
  const WeightsFile weights;
  struct Threshold {
    std::string name;
    std::vector<int64_t> group_of;  // [classes] the images that calibrate together
  };
  std::vector<int64_t> each, by_superclass = some_facts().superclass_of;
  for (int64_t c = 0; c < kClassCount; ++c) each.push_back(c);
  for (const double scale : {1.0, 100.0, 1e4}) {
    const SplitScores calibration = confident_split(5, scale, at::kFloat),
                      judged = confident_split(6, scale, at::kFloat);
    for (const std::string& score : every_score(weights.path())) {
      const auto coverage_of = [&](const std::string& name, const std::vector<int64_t>& group_of) {
        const CalibratedRule rule =
            calibrate(parse_set_rule(name), some_facts(), calibration.scores, calibration.labels, 3);
        const at::Tensor covered = sets_of(rule, judged.scores).gather(1, judged.labels.unsqueeze(1)).squeeze(1);
        std::map<int64_t, std::array<int64_t, 3>> counts;  // calibrating, judged, covered
        for (int64_t i = 0; i < kImageCount; ++i) {
          const auto label = [i](const SplitScores& split) {
            return static_cast<size_t>(split.labels.const_data_ptr<int64_t>()[i]);
          };
          ++counts[group_of[label(calibration)]][0];
          auto& group = counts[group_of[label(judged)]];
          ++group[1];
          group[2] += covered.const_data_ptr<bool>()[i];
        }
        return counts;
      };
      for (const auto& [threshold, group_of] : {Threshold{"classwise", each}, {"superclass", by_superclass}}) {
        for (const double alpha : {0.3, 0.1}) {
          const std::string name = fmt::format("conformal:{}:{}:{}", score, alpha, threshold);
          for (const auto& [group, count] : coverage_of(name, group_of)) {
            const auto [calibrated, found, covered] = count;
            const double off =
                deviations(static_cast<double>(covered) / static_cast<double>(found), calibrated, found, alpha);
            CAPTURE(name, scale, group, covered, found);
            CHECK(std::abs(off) < kMost);
          }
        }
      }
      // These promise the coverage of all images together, from a part of them, and no upper bound.
      std::vector<std::string> whole{":0.2:clustered(clusters=2,share=0.4)", ":0.2:fuzzy(0.01)"};
      if (score == "lac") whole.emplace_back(":0.1:interpolated(0.5)");
      for (const std::string& rest : whole) {
        const auto [calibrated, found, covered] =
            coverage_of("conformal:" + score + rest, std::vector<int64_t>(kClassCount)).at(0);
        CAPTURE(score, rest, scale, covered);
        const double coverage = static_cast<double>(covered) / static_cast<double>(found);
        CHECK(deviations(coverage, calibrated / 4, found, 0.2) > -kMost);
        CHECK(coverage < 0.97);
      }
    }
  }
}

TEST_CASE("average and point-wise errors keep their digits") {
  const SplitScores split = confident_split(9, 100, at::kFloat);
  const auto sets = [&](const std::string& name) {
    return sets_of(calibrate(parse_set_rule(name), some_facts(), split.scores, split.labels, 0), split.scores);
  };
  const auto lost = [&](const std::string& name) {
    return kImageCount - sets(name).gather(1, split.labels.unsqueeze(1)).sum().item<int64_t>();
  };
  CHECK(lost("average-error:0.3") == kImageCount * 3 / 10);
  CHECK(lost("average-error:0.01") == kImageCount / 100);
  CHECK(sets("average:3").sum().item<int64_t>() == 3 * kImageCount);
  // More images than this have a probability of 1 in float64; what is left of it tells them apart.
  CHECK(sets("average:0.3").sum().item<int64_t>() == kImageCount * 3 / 10);
  // A smaller error takes more classes, though the first probabilities are all 1 in float64.
  CHECK(sets("error:1e-30").sum().item<int64_t>() > sets("error:1e-20").sum().item<int64_t>());
}

TEST_CASE("classes that tie with the threshold of average:K are in all sets or in none") {
  at::manual_seed(5);
  for (const ProbabilityKind kind : {ProbabilityKind::kSigmoid, ProbabilityKind::kSoftmax}) {
    for (const double step : {0.25, 0.5, 1.0}) {
      for (const double k : {0.5, 1.0, 3.0, 4.0}) {
        const at::Tensor drawn = at::randn({400, 6}, at::kDouble).mul(3).div(step).round().mul(step);
        // The scores of a softmax are the same in each image, in another order, so that its probabilities are.
        const at::Tensor orders = std::get<1>(at::rand({400, 6}).sort(1));
        const at::Tensor permuted =
            at::tensor({3 + 2 * step, 2.5, 2.0, 0.0, 0.0, -1.0}, at::kDouble).repeat({400, 1}).gather(1, orders);
        const at::Tensor& scores = kind == ProbabilityKind::kSigmoid ? drawn : permuted;
        const CalibratedRule rule =
            calibrate(parse_set_rule(fmt::format("average:{}", k)), {.classes = 6, .probability = kind}, scores,
                      at::zeros({400}, at::kLong), 0);
        const at::Tensor sets = sets_of(rule, scores);
        CAPTURE(static_cast<int>(kind), step, k);
        CHECK(sets.sum().item<double>() >= k * 400);
        CHECK(sets.equal(scores.ge(scores.masked_select(sets).min())));
      }
    }
  }
}

TEST_CASE("the metrics of eval.rules follow alpha however sure the network is") {
  const WeightsFile weights;
  SplitScores split = confident_split(11, 2, at::kFloat);
  const SplitScores calibration = confident_split(12, 2, at::kFloat);
  std::vector<SetRule> rules;
  for (const std::string& score : every_score(weights.path()))
    rules.push_back(parse_set_rule("conformal:" + score + ":0.2"));
  MetricContext context;
  context.train_counts = some_facts().train_counts;
  context.score_scale = 30;
  context.calibration = &calibration;
  const EvaluationResult result = make_rule_metrics(rules)->prepare(split, context)({});
  for (const SetRule& rule : rules) {
    const double off = deviations(test::value_of(result, "coverage@" + rule.name()), kImageCount, kImageCount, 0.2);
    CAPTURE(rule.name(), off);
    CHECK(std::abs(off) < kMost);
  }
}

TEST_CASE("a threshold that many images share is reported, with what helps") {
  // Two classes: in aps the score of a wrong label is the largest there is.
  const at::Tensor scores = at::tensor({3.0F, 0.0F}).repeat({100, 1}), labels = at::zeros({100}, at::kLong);
  labels.slice(0, 0, 30).fill_(1);
  const auto notes = [&](const std::string& name) {
    const auto rule = calibrate(parse_set_rule(name), {.classes = 2}, scores, labels, 0);
    return rule.notes.empty() ? "" : rule.notes.front();
  };
  CHECK_THAT(notes("conformal:aps:0.1"), Catch::Contains("30 %") && Catch::Contains("randomised=true"));
  CHECK_THAT(notes("conformal:aps:0.4"), Catch::Contains("70 %") && Catch::Contains("0.6"));
  CHECK(notes("conformal:aps(randomised=true):0.1").empty());
  CHECK_THAT(notes("conformal:lac:0.1"), Catch::Contains("30 %"));
}

TEST_CASE("interpolated thresholds are linear in the probability, near 0 and near 1") {
  // Two classes whose labels have 1 - p of e^-60 and e^-50; the quantile of all is the larger.
  const at::Tensor scores = at::tensor({60.0, 0.0, 0.0, 50.0}, at::kDouble).view({2, 2});
  const at::Tensor labels = at::tensor({0, 1}, at::kLong);
  const auto rule =
      calibrate(parse_set_rule("conformal:lac:0.5:interpolated(0.75)"), {.classes = 2}, scores, labels, 0);
  const double marginal = std::exp(-50.0), own = std::exp(-60.0);
  CHECK(rule.thresholds[0].high == -1);
  CHECK(rule.thresholds[0].low == Approx(0.75 * own + 0.25 * marginal).epsilon(1e-12));
  const auto unlikely = calibrate(parse_set_rule("conformal:lac:0.5:interpolated(0.75)"), {.classes = 2}, scores,
                                  at::tensor({1, 0}, at::kLong), 0);
  CHECK(unlikely.thresholds[1].high == Approx(-own).epsilon(1e-12));
  CHECK(unlikely.thresholds[0].high == Approx(-(0.75 * marginal + 0.25 * own)).epsilon(1e-12));
  // A class without images has 0: with a weight of 1e-20 it takes that much of the other's 1 - p away.
  const auto missing = calibrate(parse_set_rule("conformal:lac:0.5:interpolated(1e-20)"), {.classes = 3},
                                 at::cat({scores, at::full({2, 1}, -800.0, at::kDouble)}, 1), labels, 0);
  CHECK(missing.thresholds[2].high == -1);
  CHECK(missing.thresholds[2].low == Approx(marginal).epsilon(1e-12));
}

TEST_CASE("interpolated thresholds are linear in probabilities that float64 has not") {
  // All labels are of the second class; the others have no image, and so 0.
  const at::Tensor rows = at::tensor({900.0, 0.0, -100.0}, at::kDouble).repeat({4, 1});
  const auto rule = calibrate(parse_set_rule("conformal:lac:0.5:interpolated(0.75)"), {.classes = 3}, rows,
                              at::ones({4}, at::kLong), 0);
  // The sum of two such probabilities is the larger of them.
  CHECK(rule.thresholds[1].high == Approx(-tail_exponential(-900 + std::log(0.75))).epsilon(1e-12));
  CHECK(rule.thresholds[0].high == Approx(-tail_exponential(-900 + std::log(0.25))).epsilon(1e-12));
}

TEST_CASE("the labels that calibrate are covered as often as their scores are within the threshold") {
  at::manual_seed(13);
  const int64_t classes = 150;  // of which RankedRow sorts some at a time
  const at::Tensor scores = at::randn({500, classes}).mul(40);
  const at::Tensor order = std::get<1>(scores.sort(1, /*descending=*/true));
  const at::Tensor labels = order.select(1, 0).clone();
  labels.narrow(0, 0, 200).copy_(order.select(1, 59).narrow(0, 0, 200));
  ClassFacts facts{.classes = classes, .train_counts = std::vector<int64_t>(classes, 3)};
  facts.train_counts[0] = 100;
  for (const char* score : {"lac", "aps", "raps", "saps", "pas"}) {
    for (const double alpha : {0.7, 0.45, 0.2}) {
      const auto rule =
          calibrate(parse_set_rule(fmt::format("conformal:{}:{}", score, alpha)), facts, scores, labels, 0);
      CAPTURE(score, alpha);
      CHECK(sets_of(rule, scores).gather(1, labels.unsqueeze(1)).sum().item<int64_t>() == conformal_rank(500, alpha));
    }
  }
}

TEST_CASE("rules of confident networks come back from JSON") {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const SplitScores calibration = confident_split(20 + seed, seed % 2 ? 1 : 30, at::kFloat);
    for (const char* score : {"lac", "aps", "raps", "raps(lambda=0.1,k=1)", "saps", "pas"}) {
      for (const char* threshold : {"", ":classwise", ":fuzzy(0.001)", ":clustered(clusters=2,share=0.4)"}) {
        const std::string name = fmt::format("conformal:{}:0.2{}", score, threshold);
        const auto rule = calibrate(parse_set_rule(name), some_facts(), calibration.scores, calibration.labels, seed);
        CAPTURE(name, seed);
        CHECK((rule_from_json(to_json(rule), kClassCount).thresholds == rule.thresholds));
      }
    }
  }
}

}  // namespace
}  // namespace settrain
