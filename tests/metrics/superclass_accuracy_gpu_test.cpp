#include <ATen/ATen.h>

#include "metrics/entries.h"
#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"

namespace settrain {
namespace {

TEST_CASE("superclass accuracy on a GPU is the CPU's, at ties too", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  MetricContext context;
  for (int64_t c = 0; c < 30; ++c) {
    context.train_counts.push_back(10 * c);
    context.superclass_of.push_back(c % 7);
  }
  for (const int64_t levels : {0, 4}) {
    const SplitScores split = test::random_split(2, 500, 30, at::kFloat, levels);
    const EvaluationResult expected = make_superclass_accuracy({true})->compute(split, context);
    const EvaluationResult got =
        make_superclass_accuracy({true})->compute({split.scores.to(at::kCUDA), split.labels.to(at::kCUDA)}, context);
    for (size_t i = 0; i < expected.values.size(); ++i) CHECK(got.values[i].value == expected.values[i].value);
  }
}

}  // namespace
}  // namespace settrain
