#include <ATen/ATen.h>
#include <fmt/format.h>

#include "losses/ops/class_margins.h"
#include "src/core/error.h"
#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

using test::build_loss;
using test::context_of;
using test::input_of;

at::Tensor noised_scores() {
  at::manual_seed(5);
  return at::randn({8, 20}, at::kDouble);
}

const at::Tensor kNoisedLabels = at::arange(8, at::kLong);

TEST_CASE("Without noise, noised top-K is the calibrated hinge") {
  const at::Tensor scores = noised_scores();
  const at::Tensor sorted = std::get<0>(at::sort(scores, 1, /*descending=*/true));
  const at::Tensor of_label = scores.gather(1, kNoisedLabels.unsqueeze(1)).squeeze(1);
  for (int64_t k = 1; k < 20; ++k) {
    const auto loss = build_loss("noised_topk", context_of(20), {"epsilon=0", "k=" + std::to_string(k)});
    CHECK(test::near((*loss)(input_of(scores, kNoisedLabels)).per_sample, (1 + sorted.select(1, k) - of_label).relu()));
  }
}

TEST_CASE("Without noise, noised top-K permutes with the classes") {
  const auto loss = build_loss("noised_topk", context_of(20), {"epsilon=0"});
  at::manual_seed(6);
  const at::Tensor order = at::randperm(20, at::kLong), place = at::argsort(order);
  CHECK(at::equal(
      (*loss)(input_of(noised_scores().index_select(1, order), place.index_select(0, kNoisedLabels))).per_sample,
      (*loss)(input_of(noised_scores(), kNoisedLabels)).per_sample));
}

TEST_CASE("Noised top-K: a satisfied sample and the kink have no gradient") {
  const auto loss = build_loss("noised_topk", context_of(3), {"epsilon=0", "k=1"});
  const at::Tensor labels = at::zeros({3}, at::kLong);
  const at::Tensor scores =
      at::tensor({5., 1., 0., /*kink*/ 2., 1., 0., /*active*/ 1., 0., 0.5}, at::kDouble).view({3, 3});
  const auto sum = [&](const at::Tensor& s) { return (*loss)(input_of(s, labels)).sum; };
  CHECK(test::near((*loss)(input_of(scores, labels)).per_sample, at::tensor({0., 0., 0.5}, at::kDouble)));
  CHECK(test::near(test::gradient_of(sum, scores),
                   at::tensor({0., 0., 0., 0., 0., 0., -1., 0., 1.}, at::kDouble).view({3, 3})));
}

TEST_CASE("Noised top-K draws noise of its own for every step and position") {
  const auto loss = build_loss("noised_topk", context_of(20), {"epsilon=1"});
  LossInput input = input_of(noised_scores(), kNoisedLabels);
  const at::Tensor first = (*loss)(input).per_sample;
  input.noise_key.step += 1;
  CHECK_FALSE(at::equal(first, (*loss)(input).per_sample));
  input.noise_key.step -= 1;
  input.noise_key.first_position += 8;
  CHECK_FALSE(at::equal(first, (*loss)(input).per_sample));
}

TEST_CASE("Noised top-K takes given noise of its own shape only") {
  const auto loss = build_loss("noised_topk", context_of(20), {"num_draws=3", "epsilon=1"});
  const at::Tensor noise = at::zeros({8, 3, 20}), scores = noised_scores();
  const auto plain = build_loss("noised_topk", context_of(20), {"epsilon=0"});
  CHECK(test::near((*loss)(input_of(scores, kNoisedLabels, noise)).per_sample,
                   (*plain)(input_of(scores, kNoisedLabels)).per_sample));
  CHECK_THROWS_WITH((*loss)(input_of(scores, kNoisedLabels, at::zeros({8, 4, 20}))),
                    Catch::Contains("noise") && Catch::Contains("[8, 3, 20]") && Catch::Contains("[8, 4, 20]"));
}

TEST_CASE("Noised top-K refuses a k that leaves no class outside the set") {
  CHECK_THROWS_WITH(build_loss("noised_topk", context_of(5), {"k=5"}),
                    Catch::Contains("loss.k") && Catch::Contains("1 to 4") && Catch::Contains("got 5"));
  CHECK_THROWS_AS(build_loss("noised_topk", context_of(5), {"k=0"}), ConfigError);
  CHECK_NOTHROW(build_loss("noised_topk", context_of(5), {"k=4"}));
}

// [8] the standard deviations of the rows' scores.
at::Tensor spreads() {
  return noised_scores().std(1, /*correction=*/0, /*keepdim=*/true);
}

TEST_CASE("epsilon: auto is noise as wide as the sample's scores") {
  const at::Tensor scores = noised_scores();
  for (const char* name : {"noised_topk", "noised_topk_imbalanced", "exact_topk", "exact_topk_imbalanced"}) {
    INFO(name);
    const auto relative = build_loss(name, context_of(20));
    const auto value = [&](const at::Tensor& s) { return (*relative)(input_of(s, kNoisedLabels)); };
    const at::Tensor losses = value(scores).per_sample;
    for (int64_t row = 0; row < 8; ++row) {
      const double spread = spreads()[row].item<double>();
      const auto absolute = build_loss(name, context_of(20), {fmt::format("epsilon={}", spread)});
      const at::Tensor expected = (*absolute)(input_of(scores, kNoisedLabels)).per_sample;
      CHECK(losses[row].item<double>() == Approx(expected[row].item<double>()).epsilon(1e-9));
    }
  }
}

TEST_CASE("epsilon: auto trains scores of any size, and equal ones") {
  const auto loss = build_loss("noised_topk", context_of(20), {"margin=0", "num_draws=3"});
  const auto value = [&](const at::Tensor& s) { return (*loss)(input_of(s, kNoisedLabels)); };
  const auto sum = [&](const at::Tensor& s) { return value(s).sum; };
  for (const double size : {1e-6, 1e6}) {
    CHECK(test::near(value(noised_scores() * size).per_sample / size, value(noised_scores()).per_sample));
    CHECK(test::near(test::gradient_of(sum, noised_scores() * size), test::gradient_of(sum, noised_scores())));
  }
  const auto with_margin = build_loss("noised_topk", context_of(20));
  const at::Tensor equal = at::full({8, 20}, 0.3, at::kFloat);
  const auto of_equal = [&](const at::Tensor& s) { return (*with_margin)(input_of(s, kNoisedLabels)).sum; };
  CHECK(of_equal(equal).item<double>() == Approx(8));
  const at::Tensor gradient = test::gradient_of(of_equal, equal);
  CHECK(gradient.sum().item<double>() == Approx(0).margin(1e-5));
  CHECK((gradient > 0).sum().item<int64_t>() > 40);  // of 80 draws, many for a class of its own
}

at::Tensor random_cosines() {
  at::manual_seed(5);
  return at::rand({8, 20}, at::kDouble) * 2 - 1;
}

at::Tensor violation(const at::Tensor& scores, double max_margin) {
  const at::Tensor margins = at::tensor(class_margins(context_of(20).class_counts, max_margin), at::kDouble);
  const at::Tensor rank6 = std::get<0>(at::sort(scores, 1, /*descending=*/true)).select(1, 5);
  return margins.index_select(0, kNoisedLabels) + rank6 - scores.gather(1, kNoisedLabels.unsqueeze(1)).squeeze(1);
}

TEST_CASE("Imbalanced: scale multiplies the loss, or the scores before the margin") {
  const at::Tensor scores = random_cosines();
  const auto on_loss = build_loss("noised_topk_imbalanced", context_of(20), {"epsilon=0", "scale=30"});
  CHECK(test::near((*on_loss)(input_of(scores, kNoisedLabels)).per_sample, (30 * violation(scores, 0.2)).relu()));
  const auto on_scores = build_loss("noised_topk_imbalanced", context_of(20),
                                    {"epsilon=0", "scale=30", "scale_on=scores", "max_margin=2"});
  CHECK(test::near((*on_scores)(input_of(scores, kNoisedLabels)).per_sample, violation(30 * scores, 2).relu()));
  CHECK(on_loss->score_scale() == 30);
  CHECK(on_scores->score_scale() == 30);
}

TEST_CASE("Imbalanced: the two scales are the same loss in other units") {
  const at::Tensor scores = random_cosines();
  const auto on_loss =
      build_loss("noised_topk_imbalanced", context_of(20), {"epsilon=0.1", "scale=30", "max_margin=0.2"});
  const auto on_scores = build_loss("noised_topk_imbalanced", context_of(20),
                                    {"epsilon=3", "scale=30", "scale_on=scores", "max_margin=6"});
  CHECK(test::near((*on_loss)(input_of(scores, kNoisedLabels)).per_sample,
                   (*on_scores)(input_of(scores, kNoisedLabels)).per_sample));
}

TEST_CASE("Imbalanced: margins follow the scores from one dtype to the other") {
  const auto loss = build_loss("noised_topk_imbalanced", context_of(20));
  const at::Tensor in_float64 = (*loss)(input_of(random_cosines(), kNoisedLabels)).per_sample;
  CHECK((*loss)(input_of(random_cosines().to(at::kFloat), kNoisedLabels)).per_sample.scalar_type() == at::kFloat);
  CHECK(at::equal((*loss)(input_of(random_cosines(), kNoisedLabels)).per_sample, in_float64));
}

TEST_CASE("Imbalanced: a class without images") {
  LossContext context = context_of(20);
  context.class_counts[3] = 0;
  CHECK_NOTHROW(build_loss("noised_topk_imbalanced", context));
  CHECK_THROWS_WITH(build_loss("noised_topk_imbalanced", context, {"zero_count_class=error"}),
                    Catch::Contains("loss.zero_count_class") && Catch::Contains("class 3"));
  context.class_counts.clear();
  CHECK_THROWS_AS(build_loss("noised_topk_imbalanced", context), DataError);
}

TEST_CASE("Imbalanced asks for a normalised head") {
  CHECK(test::builtin_losses().at("noised_topk_imbalanced").requirements.normalised_head);
  CHECK_FALSE(test::builtin_losses().at("noised_topk").requirements.normalised_head);
}

}  // namespace
}  // namespace settrain
