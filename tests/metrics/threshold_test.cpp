#include "metrics/threshold.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "src/core/values_in_sets.h"
#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double threshold(const at::Tensor& values, double k, Ties ties = Ties::kKeepAll) {
  return average_k_thresholds(values, std::vector<double>{k}, ties).at(0);
}

int64_t count_returned(const at::Tensor& values, double k, Ties ties) {
  return returned_classes(values, threshold(values, k, ties), ties).sum().item<int64_t>();
}

TEST_CASE("the threshold lies midway between the last value kept and the next") {
  const at::Tensor values = at::tensor({8., 1., 6., 3., 5., 2.}, at::kDouble).view({2, 3});
  CHECK(threshold(values, 1) == 5.5);
  CHECK(threshold(values, 2) == 2.5);
  CHECK(threshold(values, 1.5) == 4);
  CHECK(threshold(values, 0.5) == 7);
}

TEST_CASE("several thresholds are what each is on its own") {
  const at::Tensor values = test::random_split(3, 40, 7, at::kFloat).scores;
  const std::vector<double> ks{3, 0.01, 1, 7, 2.5};
  const std::vector<double> all = average_k_thresholds(values, ks, Ties::kKeepAll);
  for (size_t i = 0; i < ks.size(); ++i) CHECK(all[i] == threshold(values, ks[i]));
}

TEST_CASE("K of all classes returns everything, K below one value returns nothing") {
  const at::Tensor values = at::tensor({3.F, 1.F, 2.F, 1.F}).view({2, 2});
  for (const Ties ties : {Ties::kKeepAll, Ties::kStrict}) {
    CHECK(threshold(values, 2, ties) == -kInfinity);
    CHECK(threshold(values, 9, ties) == -kInfinity);
    CHECK(count_returned(values, 2, ties) == 4);
    CHECK(threshold(values, 0.4, ties) == kInfinity);
    CHECK(count_returned(values, 0.4, ties) == 0);
  }
}

TEST_CASE("neighbouring float32 values are told apart") {
  for (const float lower : {0.1F, 0.5F, 1.0F, 1e-38F, 0.0F}) {
    const float upper = std::nextafter(lower, 2.F);
    const at::Tensor values = at::tensor({upper, lower, lower, upper}).view({2, 2});
    for (const Ties ties : {Ties::kKeepAll, Ties::kStrict}) {
      CAPTURE(lower, ties);
      CHECK(returned_classes(values, threshold(values, 1, ties), ties).equal(values.eq(upper)));
    }
  }
}

TEST_CASE("neighbouring float64 values, which have no midpoint, are told apart") {
  // Of two pairs of neighbours, rounding takes the midpoint of one up and of the other down.
  const double first = 0.1, second = std::nextafter(first, 1.), third = std::nextafter(second, 1.);
  for (const auto& [lower, upper] : {std::pair{first, second}, std::pair{second, third}}) {
    const at::Tensor values = at::tensor({upper, lower, lower, upper}, at::kDouble).view({2, 2});
    for (const Ties ties : {Ties::kKeepAll, Ties::kStrict}) {
      CHECK(returned_classes(values, threshold(values, 1, ties), ties).equal(values.eq(upper)));
    }
  }
}

TEST_CASE("a value equal to the threshold is returned, or not where ties are strict") {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor values = at::tensor({0.25, 0.5, 0.75}, dtype).unsqueeze(0);
    CHECK(returned_classes(values, 0.5, Ties::kKeepAll).sum().item<int64_t>() == 2);
    CHECK(returned_classes(values, 0.5, Ties::kStrict).sum().item<int64_t>() == 1);
  }
}

TEST_CASE("set sizes count the returned classes of every sample") {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    at::Tensor values = test::random_split(seed, 60, 33, seed % 2 ? at::kFloat : at::kDouble, seed % 4 ? 0 : 3).scores;
    values.view({-1}).slice(0, 7, at::nullopt, 19).fill_(std::nan(""));
    if (seed % 3 == 0) values = values.t();
    const std::vector<double> lambdas{1, 0.1, -kInfinity, kInfinity, 2, std::nan("")};
    for (const Ties ties : {Ties::kKeepAll, Ties::kStrict}) {
      const at::Tensor sizes = set_sizes(values, lambdas, ties);
      REQUIRE(sizes.sizes() == at::IntArrayRef{6, values.size(0)});
      for (size_t i = 0; i < lambdas.size(); ++i) {
        CHECK(sizes[static_cast<int64_t>(i)].equal(returned_classes(values, lambdas[i], ties).sum(1)));
      }
    }
  }
  CHECK(set_sizes(at::zeros({4, 3}), {}, Ties::kStrict).sizes() == at::IntArrayRef{0, 4});
}

TEST_CASE("with ties Algorithm 1 returns at least the budget and strict at most") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const at::Tensor values = test::random_split(seed, 13, 6, seed % 2 ? at::kFloat : at::kDouble, 1 + seed % 7).scores;
    for (const double k : {0.3, 1.0, 2.5, 4.0, 5.9}) {
      CAPTURE(seed, k);
      CHECK(count_returned(values, k, Ties::kKeepAll) >= values_in_sets(k, 13, 6));
      CHECK(count_returned(values, k, Ties::kStrict) <= values_in_sets(k, 13, 6));
    }
  }
}

TEST_CASE("without ties both return exactly the budget") {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor values = at::randperm(13 * 6, dtype).view({13, 6}).div(100);
    for (const double k : {0.3, 1.0, 2.5, 5.9}) {
      CHECK(count_returned(values, k, Ties::kKeepAll) == values_in_sets(k, 13, 6));
      CHECK(count_returned(values, k, Ties::kStrict) == values_in_sets(k, 13, 6));
    }
  }
}

}  // namespace
}  // namespace settrain
