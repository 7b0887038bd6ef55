#include <ATen/ATen.h>

#include "metrics/entries.h"
#include "src/eval/evaluator.h"
#include "src/measure/check/checks.h"
#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"

namespace settrain {
namespace {

TEST_CASE("metrics match the golden values on a GPU", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  for (const CheckRow& row : check_metrics(at::kCUDA, {test::golden_path("metrics.json")})) {
    CAPTURE(row.name, row.what, row.max_error, row.note);
    CHECK(row.passed);
  }
}

TEST_CASE("metrics of the same values are the same on a GPU, to the last bit", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  std::vector<std::unique_ptr<Metric>> metrics;
  metrics.push_back(make_topk_accuracy({{1, 5, 50}}));
  metrics.push_back(make_average_k({{0.01, 2, 7.5}, AverageKScore::kRaw, Ties::kKeepAll, "same"}));
  MetricContext context;
  for (int64_t c = 0; c < 200; ++c) context.train_counts.push_back(c);
  const Evaluator evaluator(std::move(metrics), context);
  for (const int64_t levels : {0, 50}) {
    const SplitScores split = test::random_split(levels, 30000, 200, at::kFloat, levels);
    const EvaluationResult cpu = evaluator.evaluate(split);
    const EvaluationResult gpu = evaluator.evaluate({split.scores.to(at::kCUDA), split.labels.to(at::kCUDA)});
    REQUIRE(cpu.values.size() == gpu.values.size());
    for (size_t i = 0; i < cpu.values.size(); ++i) {
      CAPTURE(levels, cpu.values[i].name);
      CHECK(cpu.values[i].value == gpu.values[i].value);
    }
    for (size_t i = 0; i < cpu.set_sizes.size(); ++i) CHECK(cpu.set_sizes[i].counts == gpu.set_sizes[i].counts);
  }
}

}  // namespace
}  // namespace settrain
