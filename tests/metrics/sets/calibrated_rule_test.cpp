#include "metrics/sets/calibrated_rule.h"

#include <ATen/ATen.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/metrics/random_split.h"

namespace settrain {
namespace {

TEST_CASE("a label that sets the quantile is in its own set", "[fast]") {
  const SplitScores split = test::random_split(1, 99, 10, at::kFloat);
  for (const char* name : {"conformal:lac:0.1", "conformal:aps:0.1", "conformal:raps:0.1", "conformal:saps:0.1",
                           "conformal:pas:0.1", "conformal:lac:0.1:classwise", "conformal:lac:0.1:rc3p"}) {
    CAPTURE(name);
    ClassFacts facts;
    facts.classes = 10;
    facts.train_counts.assign(10, 3);
    const CalibratedRule rule = calibrate(parse_set_rule(name), facts, split.scores, split.labels, 0);
    const at::Tensor sets = sets_of(rule, split.scores);
    CHECK(sets.gather(1, split.labels.unsqueeze(1)).sum().item<int64_t>() >= 90);
    CHECK(to_json(rule_from_json(to_json(rule), 10)) == to_json(rule));
  }
}

}  // namespace
}  // namespace settrain
