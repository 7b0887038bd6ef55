#include <ATen/ATen.h>

#include "metrics/entries.h"
#include "src/core/error.h"
#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using test::value_of;

// Classes 0 and 2 are of one superclass, class 1 is of another.
MetricContext two_superclasses() {
  MetricContext context;
  context.train_counts = {200, 10, 10};
  context.superclass_of = {0, 1, 0};
  return context;
}

TEST_CASE("superclass accuracy of four samples, by hand") {
  // The largest scores are of 2, 0, 1 and, of a tie, 0: right but for the label, right, wrong, wrong.
  SplitScores split;
  split.scores = at::tensor({1., 2., 3., 5., 4., 3., 2., 9., 7., 6., 6., 6.}, at::kDouble).view({4, 3});
  split.labels = at::tensor({0, 0, 2, 1}, at::kLong);
  const auto metric = make_superclass_accuracy({true});
  const EvaluationResult result = metric->compute(split, two_superclasses());
  CHECK(value_of(result, "top1_superclass") == 0.5);
  CHECK(value_of(result, "macro_top1_superclass") == 1.0 / 3);
  CHECK(value_of(result, "many_top1_superclass") == 1);
  CHECK(value_of(result, "few_top1_superclass") == 0);
  CHECK(test::facts_of(result.values) == test::facts_of(metric->facts()));

  const EvaluationResult of_two = metric->prepare(split, two_superclasses())(at::tensor({0, 3}, at::kLong));
  CHECK(value_of(of_two, "top1_superclass") == 0.5);
  CHECK(value_of(of_two, "macro_top1_superclass") == 0.5);
}

TEST_CASE("superclass accuracy is measured where it is asked for, and needs superclasses") {
  const SplitScores split = test::random_split(1, 10, 3, at::kFloat);
  CHECK(make_superclass_accuracy({false})->facts().empty());
  MetricContext none = two_superclasses();
  none.superclass_of.clear();
  CHECK(make_superclass_accuracy({false})->compute(split, none).values.empty());
  CHECK_THROWS_AS(make_superclass_accuracy({true})->compute(split, none), ShapeError);
}

}  // namespace
}  // namespace settrain
