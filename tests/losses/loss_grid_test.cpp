// Every loss at several places of its parameters' ranges, see loss_grid.h.
#include "tests/losses/loss_grid.h"

#include <set>

#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

using test::both_heads;
using test::grid_labels;
using test::grid_scores;
using test::LossCase;

// Largest difference, relative to the gradient, between its product with directions in the space of the scores and
// fourth-order central differences along them.
double directional_error(const test::ScalarFunction& f, const at::Tensor& point, int directions, double step) {
  const at::Tensor gradient = test::gradient_of(f, point);
  double worst = 0;
  for (int i = 0; i < directions; ++i) {
    const at::Tensor direction = at::randn_like(point);
    const auto at_offset = [&](double steps) { return f(point + steps * step * direction).item<double>(); };
    const double difference = (8 * (at_offset(1) - at_offset(-1)) - (at_offset(2) - at_offset(-2))) / (12 * step);
    worst = std::max(worst, std::abs((gradient * direction).sum().item<double>() - difference));
  }
  return worst / std::max(1.0, gradient.abs().max().item<double>());
}

TEST_CASE("The grid has a row for every loss, and for no other") {
  std::set<std::string> in_grid;
  for (const LossCase& c : test::loss_grid()) in_grid.insert(c.name);
  for (const LossEntry& entry : test::builtin_losses().entries()) {
    CAPTURE(entry.name);
    CHECK(in_grid.erase(entry.name) == 1);
  }
  CHECK(in_grid.empty());
}

TEST_CASE("Every loss over its parameters: the gradient is that of central differences") {
  for (const LossCase& c : test::loss_grid()) {
    if (c.name == "role") continue;  // by its definition it is not; role_test.cpp holds its targets fixed
    for (const uint64_t seed : {11, 12, 13}) {
      CAPTURE(c.name, c.settings, seed);
      const auto loss = test::build_case(c);
      const at::Tensor scores = grid_scores(seed), multi = grid_scores(seed + 100);
      const auto of_scores = [&](const at::Tensor& s) { return (*loss)(both_heads(s, multi, grid_labels())).sum; };
      CHECK(directional_error(of_scores, scores, 6, 1e-5) < 1e-8);
      if (!test::builtin_losses().at(c.name).requirements.two_heads) continue;
      const auto of_multi = [&](const at::Tensor& m) { return (*loss)(both_heads(scores, m, grid_labels())).sum; };
      CHECK(directional_error(of_multi, multi, 6, 1e-5) < 1e-8);
    }
  }
}

TEST_CASE("Every loss over its parameters: float32 gives the value and gradient of float64") {
  std::vector<LossCase> cases = test::loss_grid();
  // Units far below float32's rounding of the scores.
  for (const char* tiny : {"k=4 tau=1e-6", "k=1 tau=1e-6 alpha=0", "k=8 tau=1e-6"}) {
    cases.push_back({"smoothed_topk_hinge", tiny});
  }
  for (const char* name : {"noised_topk", "exact_topk"}) {
    for (const char* tiny : {"k=4 epsilon=1e-7", "k=1 epsilon=1e-12"}) cases.push_back({name, tiny});
  }
  for (const LossCase& c : cases) {
    for (const double size : {1.0, 100.0}) {
      CAPTURE(c.name, c.settings, size);
      const auto loss = test::build_case(c);
      const at::Tensor scores = (grid_scores(13) * size).to(at::kFloat), multi = grid_scores(113).to(at::kFloat);
      const auto run = [&](at::ScalarType dtype) {
        const at::Tensor s = scores.to(dtype, /*non_blocking=*/false, /*copy=*/true).requires_grad_();
        const LossValue value = (*loss)(both_heads(s, multi.to(dtype), grid_labels()));
        value.sum.backward();
        return std::pair(value.per_sample.detach(), s.grad() / loss->score_scale());
      };
      const auto [value, gradient] = run(at::kFloat);
      const auto [expected_value, expected_gradient] = run(at::kDouble);
      const double units = size * loss->score_scale();
      CHECK(test::near(value / units, expected_value / units));
      CHECK(test::relative_error(gradient, expected_gradient) < 1e-4);
    }
  }
}

TEST_CASE("Every loss over its parameters: a batch of one is that row of the batch") {
  for (const LossCase& c : test::loss_grid()) {
    if (test::is_batch_level(c)) continue;
    CAPTURE(c.name, c.settings);
    const auto loss = test::build_case(c);
    const at::Tensor scores = grid_scores(14), multi = grid_scores(114), labels = grid_labels();
    const at::Tensor whole = (*loss)(both_heads(scores, multi, labels)).per_sample;
    for (int64_t i = 0; i < test::kGridBatch; ++i) {
      LossInput single = both_heads(scores.slice(0, i, i + 1), multi.slice(0, i, i + 1), labels.slice(0, i, i + 1));
      single.noise_key.first_position = i;
      CHECK(at::equal((*loss)(single).per_sample, whole.slice(0, i, i + 1)));
    }
  }
}

}  // namespace
}  // namespace settrain
