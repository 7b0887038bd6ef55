#include "losses/noised_topk_imbalanced.h"

#include <ATen/ATen.h>

#include "losses/ops/margins.h"
#include "src/core/error.h"
#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

using test::build_loss;
using test::context_of;
using test::input_of;

const at::Tensor kImbalancedLabels = at::arange(8, at::kLong);

at::Tensor random_cosines() {
  at::manual_seed(5);
  return at::rand({8, 20}, at::kDouble) * 2 - 1;
}

at::Tensor violation(const at::Tensor& scores, double max_margin) {
  const at::Tensor margins = at::tensor(class_margins(context_of(20).class_counts, max_margin), at::kDouble);
  const at::Tensor rank6 = std::get<0>(at::sort(scores, 1, /*descending=*/true)).select(1, 5);
  return margins.index_select(0, kImbalancedLabels) + rank6 -
         scores.gather(1, kImbalancedLabels.unsqueeze(1)).squeeze(1);
}

TEST_CASE("Imbalanced: scale multiplies the loss, or the scores before the margin") {
  const at::Tensor scores = random_cosines();
  const auto on_loss = build_loss("noised_topk_imbalanced", context_of(20), {"epsilon=0", "scale=30"});
  CHECK(test::near((*on_loss)(input_of(scores, kImbalancedLabels)).per_sample, (30 * violation(scores, 0.2)).relu()));
  const auto on_scores = build_loss("noised_topk_imbalanced", context_of(20),
                                    {"epsilon=0", "scale=30", "scale_on=scores", "max_margin=2"});
  CHECK(test::near((*on_scores)(input_of(scores, kImbalancedLabels)).per_sample, violation(30 * scores, 2).relu()));
  CHECK(on_loss->score_scale() == 30);
  CHECK(on_scores->score_scale() == 30);
}

TEST_CASE("Imbalanced: the two scales are the same loss in other units") {
  const at::Tensor scores = random_cosines();
  const auto on_loss =
      build_loss("noised_topk_imbalanced", context_of(20), {"epsilon=0.1", "scale=30", "max_margin=0.2"});
  const auto on_scores = build_loss("noised_topk_imbalanced", context_of(20),
                                    {"epsilon=3", "scale=30", "scale_on=scores", "max_margin=6"});
  CHECK(test::near((*on_loss)(input_of(scores, kImbalancedLabels)).per_sample,
                   (*on_scores)(input_of(scores, kImbalancedLabels)).per_sample));
}

TEST_CASE("Imbalanced: margins follow the scores from one dtype to the other") {
  const auto loss = build_loss("noised_topk_imbalanced", context_of(20));
  const at::Tensor in_float64 = (*loss)(input_of(random_cosines(), kImbalancedLabels)).per_sample;
  CHECK((*loss)(input_of(random_cosines().to(at::kFloat), kImbalancedLabels)).per_sample.scalar_type() == at::kFloat);
  CHECK(at::equal((*loss)(input_of(random_cosines(), kImbalancedLabels)).per_sample, in_float64));
}

TEST_CASE("Imbalanced: a class without images") {
  LossContext context = context_of(20);
  context.class_counts[3] = 0;
  CHECK_NOTHROW(build_loss("noised_topk_imbalanced", context));
  CHECK_THROWS_WITH(build_loss("noised_topk_imbalanced", context, {"zero_count_class=error"}),
                    Catch::Contains("loss.zero_count_class") && Catch::Contains("class 3 has no training image"));
  context.class_counts.clear();
  CHECK_THROWS_AS(build_loss("noised_topk_imbalanced", context), DataError);
}

TEST_CASE("Imbalanced asks for a normalised head") {
  CHECK(test::builtin_losses().at("noised_topk_imbalanced").requirements.normalised_head);
  CHECK_FALSE(test::builtin_losses().at("noised_topk").requirements.normalised_head);
}

}  // namespace
}  // namespace settrain
