#include "src/train/step_result.h"

#include <ATen/ATen.h>

#include "src/train/run_options.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

StepMetrics measuring(config::Integers top_k, bool gradient_nonzeros) {
  TrainOptions options;
  options.top_k = std::move(top_k);
  options.gradient_nonzeros = gradient_nonzeros;
  return StepMetrics(options);
}

// Scores that a gradient can flow through, as a head makes them.
at::Tensor made_scores() {
  const at::Tensor leaf = at::tensor({.1F, .4F, .3F, .2F, .5F, .5F, .5F, .5F}).view({2, 4}).requires_grad_();
  return leaf.mul(1);
}

std::vector<double> values_of(const at::Tensor& sums) {
  REQUIRE(sums.scalar_type() == at::kDouble);
  return {sums.const_data_ptr<double>(), sums.const_data_ptr<double>() + sums.numel()};
}

TEST_CASE("a step measures what is asked for, and top-1 anyway") {
  using Names = std::vector<std::string>;
  CHECK(measuring({}, false).names().empty());
  CHECK(measuring({1}, false).names().empty());
  CHECK(measuring({5, 1, 2}, true).names() == Names{"top5", "top2", "gradient_nonzeros"});
}

TEST_CASE("labels among the K largest scores of a batch, by hand") {
  ModelOutput output;
  output.scores = made_scores();
  // The labels' ranks are 2 and, where all scores tie, 1.
  const at::Tensor labels = at::tensor({3, 1}, at::kLong);
  CHECK(values_of(measuring({4, 2, 3}, false).sums(output, labels)) == std::vector<double>{2, 1, 2});
}

TEST_CASE("classes with a derivative that is not 0, by hand") {
  const StepMetrics metrics = measuring({}, true);
  const at::Tensor labels = at::tensor({3, 1}, at::kLong);
  ModelOutput output;
  output.scores = made_scores();
  metrics.watch(output);
  // The first sample moves two of its scores, the second one; a maximum with 0 below the kink moves none.
  const at::Tensor& s = output.scores;
  (s[0][1] - s[0][3] * 1e-30 + s[1][2] + (s[1][0] - 1).clamp_min(0)).backward();
  CHECK(values_of(metrics.sums(output, labels)) == std::vector<double>{3});

  // With two heads, the scores of the one that answers.
  output.scores_multi = made_scores();
  metrics.watch(output);
  (output.scores.detach().sum() + output.scores_multi[1].sum()).backward();
  CHECK(values_of(metrics.sums(output, labels)) == std::vector<double>{4});
}

TEST_CASE("scores without a gradient count none") {
  const StepMetrics metrics = measuring({2}, true);
  ModelOutput output;
  output.scores = made_scores().detach();
  metrics.watch(output);
  CHECK(values_of(metrics.sums(output, at::tensor({3, 1}, at::kLong))) == std::vector<double>{1, 0});
}

}  // namespace
}  // namespace settrain
