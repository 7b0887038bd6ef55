// No loss may depend on the numbering of classes or samples.
#include <ATen/ATen.h>

#include "tests/losses/loss_grid.h"
#include "tests/support/catch2.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

using test::both_heads;
using test::kGridBatch;
using test::kGridClasses;
using test::LossCase;

struct Batch {
  at::Tensor scores, multi, labels, noise;
};

struct BatchOutcome {
  at::Tensor per_sample, gradient;
};

BatchOutcome outcome(Loss& loss, const Batch& batch) {
  const at::Tensor scores = batch.scores.clone().requires_grad_();
  const LossValue value = loss(both_heads(scores, batch.multi, batch.labels, batch.noise));
  value.sum.backward();
  return {value.per_sample.detach(), scores.grad()};
}

at::Tensor noise_for(const LossCase& c) {
  const int64_t draws = test::draws_of(c);
  return draws == 0 ? at::Tensor() : at::randn({kGridBatch, draws, kGridClasses});
}

Batch random_batch(const LossCase& c) {
  at::manual_seed(21);
  return {at::randn({kGridBatch, kGridClasses}, at::kDouble), at::randn({kGridBatch, kGridClasses}, at::kDouble),
          test::grid_labels(), noise_for(c)};
}

// Scores of three values, so that every row has ties.
Batch tied_batch(const LossCase& c) {
  at::manual_seed(22);
  return {at::randint(0, 3, {kGridBatch, kGridClasses}, at::kDouble),
          at::randn({kGridBatch, kGridClasses}, at::kDouble), test::grid_labels(), noise_for(c)};
}

// Class j becomes class place[j], where order[place[j]] = j.
Batch with_classes(const Batch& batch, const at::Tensor& order) {
  return {batch.scores.index_select(1, order), batch.multi.index_select(1, order),
          at::argsort(order).index_select(0, batch.labels),
          batch.noise.defined() ? batch.noise.index_select(2, order) : at::Tensor()};
}

LossContext with_classes(LossContext context, const at::Tensor& order) {
  const LossContext before = context;
  for (int64_t j = 0; j < kGridClasses; ++j) context.class_counts[j] = before.class_counts[order[j].item<int64_t>()];
  return context;
}

Batch with_samples(const Batch& batch, const at::Tensor& order) {
  return {batch.scores.index_select(0, order), batch.multi.index_select(0, order), batch.labels.index_select(0, order),
          batch.noise.defined() ? batch.noise.index_select(0, order) : at::Tensor()};
}

const at::Tensor kClassOrder = at::tensor({7, 0, 3, 8, 1, 6, 2, 5, 4}, at::kLong);

TEST_CASE("Every loss of the grid permutes with the classes, its margins and its noise along") {
  for (const LossCase& c : test::loss_grid()) {
    CAPTURE(c.name, c.settings);
    const LossContext context = test::context_of(kGridClasses);
    const auto loss = test::build_case(c, context), permuted = test::build_case(c, with_classes(context, kClassOrder));
    const Batch batch = random_batch(c);
    const BatchOutcome before = outcome(*loss, batch), after = outcome(*permuted, with_classes(batch, kClassOrder));
    CHECK(test::near(after.per_sample, before.per_sample));
    CHECK(test::near(after.gradient, before.gradient.index_select(1, kClassOrder)));
  }
}

TEST_CASE("Every loss of the grid has one value at ties, however the classes are numbered") {
  for (const LossCase& c : test::loss_grid()) {
    if (c.name == "average_k_two_head") continue;  // ties choose its candidates, by row and class: see its own test
    CAPTURE(c.name, c.settings);
    const LossContext context = test::context_of(kGridClasses);
    const auto loss = test::build_case(c, context), permuted = test::build_case(c, with_classes(context, kClassOrder));
    const Batch batch = tied_batch(c);
    const BatchOutcome before = outcome(*loss, batch), after = outcome(*permuted, with_classes(batch, kClassOrder));
    CHECK(test::near(after.per_sample, before.per_sample));
    CHECK(test::near(after.gradient.sum(1), before.gradient.sum(1)));
    CHECK(at::isfinite(after.gradient).all().item<bool>());
  }
}

TEST_CASE("Every loss of the grid permutes with the samples of its batch, their noise along") {
  const at::Tensor order = at::tensor({2, 0, 1}, at::kLong);
  for (const LossCase& c : test::loss_grid()) {
    CAPTURE(c.name, c.settings);
    const auto loss = test::build_case(c);
    const Batch batch = random_batch(c);
    const BatchOutcome before = outcome(*loss, batch), after = outcome(*loss, with_samples(batch, order));
    CHECK(test::near(after.per_sample, before.per_sample.index_select(0, order)));
    CHECK(test::near(after.gradient, before.gradient.index_select(0, order)));
  }
}

// The gradient's sum over classes is the derivative of a shift of all scores; that of binary losses is not zero.
TEST_CASE("Every loss over its parameters: what a shift of the scores does, its gradient's sum tells") {
  for (const LossCase& c : test::loss_grid()) {
    CAPTURE(c.name, c.settings);
    const auto loss = test::build_case(c);
    const Batch batch = random_batch(c);
    Batch shifted = batch;
    shifted.scores = batch.scores + 1000;
    const BatchOutcome before = outcome(*loss, batch), after = outcome(*loss, shifted);
    const double sum = before.gradient.sum(1).abs().max().item<double>() / loss->score_scale();
    if (!test::is_relative(c.name)) {
      CHECK(sum > 0.01);
      CHECK_FALSE(test::near(after.per_sample, before.per_sample));
    } else {
      CHECK(sum < 1e-9);
      CHECK(test::relative_error(after.per_sample, before.per_sample) < 1e-9 * loss->score_scale());
    }
  }
}

}  // namespace
}  // namespace settrain
