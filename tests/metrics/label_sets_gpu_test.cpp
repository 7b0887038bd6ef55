#include <ATen/ATen.h>

#include "metrics/entries.h"
#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"

namespace settrain {
namespace {

TEST_CASE("accuracies by all labels on a GPU are the CPU's", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  SplitScores split = test::random_split(4, 500, 30, at::kFloat);
  split.label_sets = at::rand({500, 30}).lt(0.1).scatter(1, split.labels.unsqueeze(1), true);
  const AverageKOptions average_k{.average_k = {2, 5},
                                  .average_k_score = AverageKScore::kRaw,
                                  .average_k_ties = Ties::kKeepAll,
                                  .threshold_from = "same"};
  const auto metric = make_label_sets({.label_sets = true}, {.top_k = {1, 5}}, average_k);
  const EvaluationResult expected = metric->compute(split, {});
  const SplitScores there{split.scores.to(at::kCUDA), split.labels.to(at::kCUDA), split.label_sets.to(at::kCUDA)};
  const EvaluationResult got = metric->compute(there, {});
  REQUIRE(got.values.size() == expected.values.size());
  for (size_t i = 0; i < expected.values.size(); ++i) {
    CAPTURE(expected.values[i].name);
    CHECK(got.values[i].value == Approx(expected.values[i].value).epsilon(1e-9));
  }
}

}  // namespace
}  // namespace settrain
