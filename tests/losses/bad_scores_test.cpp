// NaN and infinite scores: the losses of these, and the ones that are refused.
#include <ATen/ATen.h>

#include <limits>

#include "src/core/error.h"
#include "tests/losses/loss_grid.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Catch::Contains;
using test::both_heads;
using test::grid_labels;
using test::grid_scores;
using test::LossCase;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

at::Tensor per_sample(const LossCase& c, const at::Tensor& scores, const at::Tensor& multi) {
  return (*test::build_case(c))(both_heads(scores, multi, grid_labels())).per_sample;
}

TEST_CASE("Every loss: a NaN among the scores of a sample, of its label or not, makes its loss NaN") {
  for (const LossCase& c : test::loss_grid()) {
    const bool two_heads = test::builtin_losses().at(c.name).requirements.two_heads;
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      for (const int64_t j : {0, 3, 8}) {  // 0 is the label
        CAPTURE(c.name, c.settings, dtype, j);
        const at::Tensor multi = grid_scores(32).to(dtype);
        at::Tensor scores = grid_scores(31).to(dtype);
        scores[0][j] = kNan;
        const at::Tensor got = per_sample(c, scores, multi);
        CHECK(got[0].isnan().item<bool>());
        // Batch-level terms spread it; elsewhere the other samples keep their losses.
        if (!test::is_batch_level(c)) CHECK(at::isfinite(got.slice(0, 1)).all().item<bool>());
        if (two_heads) CHECK(per_sample(c, multi, scores)[0].isnan().item<bool>());
      }
      CHECK(per_sample(c, at::full({3, 9}, kNan, dtype), at::zeros({3, 9}, dtype)).isnan().all().item<bool>());
    }
  }
}

// Whether the loss leaves a class out whose score is -infinity, where ever smaller scores have another limit.
bool leaves_out_masked(const LossCase& c) {
  const bool has_spread_noise = c.name.find("noised_topk") == 0 || c.name.find("exact_topk") == 0;
  return c.name == "role" || (has_spread_noise && c.settings.find("epsilon") == std::string::npos);
}

TEST_CASE("Every loss: an infinite score gives the limit of ever larger ones, infinity or NaN") {
  for (const LossCase& c : test::loss_grid()) {
    for (const double sign : {1.0, -1.0}) {
      for (const int64_t j : {0, 3}) {
        if (sign < 0 && j != 0 && leaves_out_masked(c)) continue;
        CAPTURE(c.name, c.settings, sign, j);
        at::Tensor scores = grid_scores(33), large = scores.clone();
        const at::Tensor multi = grid_scores(34);
        scores[0][j] = sign * kInfinity;
        large[0][j] = sign * 1e9;
        const double got = per_sample(c, scores, multi)[0].item<double>();
        const double limit = per_sample(c, large, multi)[0].item<double>();
        if (std::isfinite(got)) CHECK(got == Approx(limit).epsilon(1e-6).margin(1e-6));
        if (std::isinf(got)) CHECK((got > 0 && limit > 1e5));
      }
    }
  }
}

TEST_CASE("Every loss: with classes masked by -infinity, but the label, losses and gradients are finite") {
  for (const LossCase& c : test::loss_grid()) {
    const int64_t k = c.settings.starts_with("k=") ? std::stoll(c.settings.substr(2)) : 1;
    if (k + 1 > 6) continue;                                     // too few classes are left
    if (c.settings.starts_with("label_smoothing=0.")) continue;  // a masked class has a share of the target: infinite
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      CAPTURE(c.name, c.settings, dtype);
      at::Tensor scores = grid_scores(37).to(dtype);
      const at::Tensor multi = grid_scores(38).to(dtype);
      for (const auto& [row, j] : {std::pair{0, 3}, {0, 8}, {1, 0}, {2, 0}, {2, 1}, {2, 4}})
        scores[row][j] = -kInfinity;
      const auto loss = test::build_case(c);
      const at::Tensor leaf = scores.clone().requires_grad_();
      const LossValue value = (*loss)(both_heads(leaf, multi, grid_labels()));
      CHECK(at::isfinite(value.per_sample).all().item<bool>());
      value.sum.backward();
      CHECK(at::isfinite(leaf.grad()).all().item<bool>());
      CHECK(leaf.grad().masked_select(scores.isinf()).abs().max().item<double>() == 0);
    }
  }
}

TEST_CASE("Every loss refuses an empty batch, another number of classes and labels out of range") {
  for (const LossCase& c : test::loss_grid()) {
    CAPTURE(c.name, c.settings);
    const auto loss = test::build_case(c);
    const auto call = [&](const at::Tensor& scores, const at::Tensor& labels) {
      (*loss)(both_heads(scores, scores, labels));
    };
    const at::Tensor labels = grid_labels();
    CHECK_THROWS_AS(call(at::zeros({0, 9}), labels.slice(0, 0, 0)), ShapeError);
    CHECK_THROWS_WITH(call(at::zeros({0, 9}), labels.slice(0, 0, 0)),
                      Contains("scores") && Contains("at least one sample"));
    CHECK_THROWS_WITH(call(at::zeros({3, 8}), labels), Contains("scores") && Contains("[*, 9]") && Contains("[3, 8]"));
    CHECK_THROWS_WITH(call(at::zeros({3, 9}), labels + 1),
                      Contains("labels[2]") && Contains("0 to 8") && Contains("got 9"));
    CHECK_THROWS_WITH(call(at::zeros({3, 9}), labels - 1),
                      Contains("labels[0]") && Contains("0 to 8") && Contains("got -1"));
  }
}

TEST_CASE("Every loss with sets of k classes: its largest k works, one more is refused") {
  for (const LossEntry& entry : test::builtin_losses().entries()) {
    const auto is_k = [](const config::Key& key) { return key.name == "k"; };
    if (std::none_of(entry.keys.begin(), entry.keys.end(), is_k)) continue;
    CAPTURE(entry.name);
    const int64_t largest = entry.name == "average_k_two_head" ? 9 : 8;  // a mean size may be all classes
    const LossCase fits{entry.name, "k=" + std::to_string(largest)},
        too_large{entry.name, "k=" + std::to_string(largest + 1)};
    CHECK(at::isfinite(per_sample(fits, grid_scores(35), grid_scores(36))).all().item<bool>());
    CHECK_THROWS_AS(test::build_case(too_large), ConfigError);
    CHECK_THROWS_WITH(test::build_case(too_large), Contains("loss.k") && Contains("number of classes") &&
                                                       Contains("got " + std::to_string(largest + 1)));
    CHECK_THROWS_AS(test::build_case({entry.name, "k=0"}), ConfigError);
  }
}

}  // namespace
}  // namespace settrain
