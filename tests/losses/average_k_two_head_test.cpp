#include <ATen/ATen.h>
#include <fmt/format.h>

#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"

namespace settrain {
namespace {

LossInput two_heads(const at::Tensor& single, const at::Tensor& multi, const at::Tensor& labels) {
  LossInput input = test::input_of(single, labels);
  input.output.scores_multi = multi;
  return input;
}

// [batch, classes] bool: the classes other than the labels whose scores the loss raises.
at::Tensor candidates(const at::Tensor& single, const at::Tensor& labels, const std::string& k) {
  const auto loss = test::build_loss("average_k_two_head", test::context_of(single.size(1)), {k});
  const at::Tensor multi = at::zeros_like(single).requires_grad_();
  (*loss)(two_heads(single, multi, labels)).sum.backward();
  return multi.grad().lt(0).scatter(1, labels.unsqueeze(1), 0);
}

TEST_CASE("Candidates are the largest of the whole batch, without the labels; ties go to row, then class") {
  const at::Tensor labels = at::tensor({0, 1}, at::kLong);
  const auto expected = [](std::initializer_list<int64_t> flags) {
    return at::tensor(flags, at::kLong).to(at::kBool).view({2, 3});
  };
  const at::Tensor distinct = at::tensor({5.0, 1.0, 0.0, 2.0, 5.0, 0.5}, at::kDouble).view({2, 3});
  CHECK(at::equal(candidates(distinct, labels, "k=2"), expected({0, 1, 0, 1, 0, 0})));
  const at::Tensor ties = at::tensor({0.0, 1.0, 1.0, 1.0, 0.0, 1.0}, at::kDouble).view({2, 3});
  CHECK(at::equal(candidates(ties, labels, "k=2.5"), expected({0, 1, 1, 1, 0, 0})));
  CHECK(at::equal(candidates(ties, labels, "k=1.5"), expected({0, 1, 0, 0, 0, 0})));
  CHECK(at::equal(candidates(ties, labels, "k=1"), expected({0, 0, 0, 0, 0, 0})));
}

TEST_CASE("The loss by hand, with and without the label among the negatives") {
  // One sample, label 0, candidate 2, negative 1; scores of the second head are 0: every term is log 2.
  const at::Tensor single = at::tensor({2.0, 0.0, 1.0}, at::kDouble).view({1, 3}),
                   multi = at::zeros({1, 3}, at::kDouble);
  const at::Tensor label = at::tensor({int64_t{0}});
  const double ce = -at::log_softmax(single, 1)[0][0].item<double>(), log2 = std::log(2.0);
  const auto value = [&](const std::string& more) {
    const auto loss = test::build_loss("average_k_two_head", test::context_of(3), {"k=2", "alpha=0.5", more});
    return (*loss)(two_heads(single, multi, label)).sum.item<double>();
  };
  CHECK(value("negatives_include_label=false") == Approx(ce + log2 + 0.5 * log2 + 0.5 * log2).epsilon(1e-12));
  CHECK(value("negatives_include_label=true") == Approx(ce + log2 + 0.5 * log2 + 0.5 * 2 * log2).epsilon(1e-12));
}

TEST_CASE("Where (K-1) B is not whole, eq. 5.9 divides by the terms that there are, eq. 5.14 by (K-1) B") {
  // Three samples of four classes, K = 1.5: one candidate and eight negatives. Every term of the second head is log 2.
  const at::Tensor single = at::zeros({3, 4}, at::kDouble), labels = at::tensor({0, 1, 2}, at::kLong);
  const auto value = [&](const std::string& more) {
    const auto loss = test::build_loss("average_k_two_head", test::context_of(4), {"k=1.5", "alpha=0.5", more});
    return (*loss)(two_heads(single, single.clone(), labels)).mean().item<double>();
  };
  const double ce_and_label = std::log(4.0) + std::log(2.0), log2 = std::log(2.0);
  CHECK(value("negatives_include_label=false") == Approx(ce_and_label + 0.5 * log2 + 0.5 * log2).epsilon(1e-12));
  CHECK(value("negatives_include_label=true") ==
        Approx(ce_and_label + 0.5 * log2 * 1 / 1.5 + 0.5 * log2 * 11 / 7.5).epsilon(1e-12));
}

TEST_CASE("Both heads learn: gradients against central differences, K need not be whole") {
  at::manual_seed(1);
  const at::Tensor single = at::randn({4, 6}, at::kDouble), multi = at::randn({4, 6}, at::kDouble);
  const at::Tensor labels = at::tensor({0, 2, 4, 5}, at::kLong);
  for (const char* k : {"k=1", "k=2.5", "k=6"}) {
    const auto loss = test::build_loss("average_k_two_head", test::context_of(6), {k});
    CHECK(test::gradient_error([&](const at::Tensor& s) { return (*loss)(two_heads(s, multi, labels)).sum; }, single,
                               1e-5) < 1e-9);
    CHECK(test::gradient_error([&](const at::Tensor& z) { return (*loss)(two_heads(single, z, labels)).sum; }, multi,
                               1e-4) < 1e-9);
  }
}

TEST_CASE("The candidates are (K-1) B, rounded down, also where that product of doubles is just below a whole number") {
  constexpr int64_t kClasses = 12;
  for (const int64_t batch : {10, 50, 64}) {
    const at::Tensor labels = at::arange(batch, at::kLong).remainder(kClasses);
    for (int64_t tenths = 11; tenths < 100; ++tenths) {
      const std::string k = fmt::format("k={}.{}", tenths / 10, tenths % 10);
      CAPTURE(batch, k);
      const at::Tensor chosen = candidates(at::zeros({batch, kClasses}), labels, k);
      CHECK(chosen.sum().item<int64_t>() == (tenths - 10) * batch / 10);
    }
  }
}

TEST_CASE("A model with one head is reported") {
  const auto loss = test::build_loss("average_k_two_head", test::context_of(6));
  CHECK_THROWS_WITH((*loss)(test::input_of(at::zeros({1, 6}), at::tensor({int64_t{0}}))),
                    Catch::Contains("scores_multi") && Catch::Contains("second head"));
}

}  // namespace
}  // namespace settrain
