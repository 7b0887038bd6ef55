// Losses that are one another at the ends of their parameters' ranges.
#include <ATen/ATen.h>

#include "tests/losses/loss_grid.h"
#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

using test::both_heads;
using test::kGridClasses;
using test::LossCase;

constexpr int64_t kLimitBatch = 18;

const at::Tensor& labels() {
  static const at::Tensor tensor = at::arange(kLimitBatch, at::kLong).remainder(kGridClasses);
  return tensor;
}

// Two samples a label.
at::Tensor seeded_scores(uint64_t seed) {
  at::manual_seed(seed);
  return at::randn({kLimitBatch, kGridClasses}, at::kDouble);
}

struct LimitOutcome {
  at::Tensor per_sample, gradient;
};

// With noise [1, 3, classes] for every sample.
LimitOutcome outcome_at_limit(const LossCase& c, const at::Tensor& scores, const LossContext& context) {
  at::manual_seed(41);
  const at::Tensor noise = at::randn({kLimitBatch, 3, kGridClasses});
  const auto loss = test::build_case(c, context);
  const auto value = [&](const at::Tensor& s) {
    return (*loss)(both_heads(s, seeded_scores(42), labels(), test::draws_of(c) == 3 ? noise : at::Tensor()));
  };
  return {value(scores).per_sample, test::gradient_of([&](const at::Tensor& s) { return value(s).sum; }, scores)};
}

void check_same(const LossCase& a, const LossCase& b, const LossContext& context = test::context_of(kGridClasses)) {
  CAPTURE(a.name, a.settings, b.name, b.settings);
  for (const uint64_t seed : {43, 44}) {
    const LimitOutcome left = outcome_at_limit(a, seeded_scores(seed), context),
                       right = outcome_at_limit(b, seeded_scores(seed), context);
    CHECK(test::near(left.per_sample, right.per_sample));
    CHECK(test::near(left.gradient, right.gradient));
    CHECK(right.per_sample.max().item<double>() > 0.1);
  }
}

TEST_CASE("Losses that are the same at special parameters, by value and gradient") {
  // One class: the multiclass hinge of Crammer and Singer.
  check_same({"topk_hinge_convex", "k=1"}, {"topk_hinge", "k=1"});
  check_same({"topk_hinge_scaled", "k=1"}, {"topk_hinge", "k=1"});
  check_same({"smoothed_topk_hinge", "k=1 tau=1 alpha=0"}, {"cross_entropy", ""});
  check_same({"smoothed_topk_hinge", "k=4 tau=1e-6 alpha=0.5"}, {"topk_hinge_scaled", "k=4 alpha=0.5"});
  check_same({"focal", "gamma=0"}, {"cross_entropy", ""});
  check_same({"ldam", "max_margin=0 scale=1"}, {"cross_entropy", ""});
  check_same({"expected_positive_regularisation", "beta=0"}, {"bce_positive", ""});
  for (const char* k : {"k=1", "k=4", "k=8"}) {
    const std::string settings = std::string(k) + " epsilon=0";
    check_same({"noised_topk", settings + " num_draws=3"}, {"topk_hinge_calibrated", k});
    check_same({"exact_topk", settings}, {"topk_hinge_calibrated", k});
    check_same({"exact_topk", std::string(k) + " epsilon=1e-9"}, {"topk_hinge_calibrated", k});
    check_same({"noised_topk", std::string(k) + " epsilon=1e-13 num_draws=3"}, {"topk_hinge_calibrated", k});
  }
}

TEST_CASE("Imbalanced losses of equally frequent classes are the balanced ones with the largest margin") {
  const LossContext equal = test::context_of_counts(std::vector<int64_t>(kGridClasses, 7));
  check_same({"noised_topk_imbalanced", "k=4 epsilon=0.3 num_draws=3 scale=1 max_margin=0.7"},
             {"noised_topk", "k=4 epsilon=0.3 num_draws=3 margin=0.7"}, equal);
  check_same({"noised_topk_imbalanced", "k=4 epsilon=0.3 num_draws=3 scale=1 scale_on=scores max_margin=0.7"},
             {"noised_topk", "k=4 epsilon=0.3 num_draws=3 margin=0.7"}, equal);
  check_same({"exact_topk_imbalanced", "k=4 epsilon=0.3 scale=1 max_margin=0.7"},
             {"exact_topk", "k=4 epsilon=0.3 margin=0.7"}, equal);
}

TEST_CASE("Smoothed hinge of one class is cross-entropy with the margin on the wrong classes, at any tau") {
  for (const double tau : {0.05, 1.0, 20.0}) {
    const at::Tensor scores = seeded_scores(45);
    const at::Tensor raised = (scores + 0.3).scatter(1, labels().unsqueeze(1), scores.gather(1, labels().unsqueeze(1)));
    const at::Tensor expected = tau * at::cross_entropy_loss(raised / tau, labels(), {}, at::Reduction::None);
    const LossCase smoothed{"smoothed_topk_hinge", "k=1 alpha=0.3 tau=" + std::to_string(tau)};
    CHECK(test::near(outcome_at_limit(smoothed, scores, test::context_of(kGridClasses)).per_sample, expected));
  }
}

TEST_CASE("Average-K at alpha = 0 is cross-entropy of one head plus binary cross-entropy of the other") {
  const LossContext context = test::context_of(kGridClasses);
  const at::Tensor single = seeded_scores(46), multi = seeded_scores(42);
  const LimitOutcome got = outcome_at_limit({"average_k_two_head", "k=3 alpha=0"}, single, context),
                     first = outcome_at_limit({"cross_entropy", ""}, single, context),
                     second = outcome_at_limit({"bce_positive", ""}, multi, context);
  CHECK(test::near(got.per_sample, first.per_sample + second.per_sample));
  CHECK(test::near(got.gradient, first.gradient));
}

TEST_CASE("Without a margin the calibrated hinge is positive only at top-K errors") {
  const LossContext context = test::context_of(kGridClasses);
  const at::Tensor scores = seeded_scores(47);
  for (const char* k : {"k=1", "k=4", "k=8"}) {
    const at::Tensor error = outcome_at_limit({"topk_zero_one", k}, scores, context).per_sample;
    for (const char* name : {"noised_topk", "exact_topk"}) {
      const LossCase hinge{name, std::string(k) + " epsilon=0 margin=0"};
      // The label of rank k + 1 is an error of no loss.
      const at::Tensor positive = outcome_at_limit(hinge, scores, context).per_sample.gt(0);
      CHECK(at::equal(positive.logical_and(error.eq(0)), at::zeros({kLimitBatch}, at::kBool)));
    }
    // The calibrated hinge is never above the plain one, and equal to it for a label among the k best.
    const at::Tensor plain = outcome_at_limit({"topk_hinge", k}, scores, context).per_sample,
                     calibrated = outcome_at_limit({"topk_hinge_calibrated", k}, scores, context).per_sample;
    CHECK(calibrated.le(plain).all().item<bool>());
    CHECK(at::equal(calibrated.mul(1 - error), plain.mul(1 - error)));
  }
}

}  // namespace
}  // namespace settrain
