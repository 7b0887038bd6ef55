#include "metrics/average_k_threshold.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "src/core/values_in_sets.h"
#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr double kInfiniteKey = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// From the largest to the smallest, NaN first.
std::vector<double> full_sort(const at::Tensor& values) {
  const at::Tensor wide = values.contiguous().to(at::kDouble);
  std::vector<double> all(wide.const_data_ptr<double>(), wide.const_data_ptr<double>() + wide.numel());
  std::sort(all.begin(), all.end(), [](double a, double b) { return std::isnan(a) ? !std::isnan(b) : a > b; });
  return all;
}

void check_against_full_sort(const at::Tensor& values, const std::vector<int64_t>& ranks) {
  const std::vector<double> expected = full_sort(values), found = order_statistics(values, ranks);
  REQUIRE(found.size() == ranks.size());
  int64_t wrong = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const double value = expected[ranks[i]];
    wrong += std::isnan(value) ? !std::isnan(found[i]) : found[i] != value;
  }
  CHECK(wrong == 0);
}

std::vector<int64_t> every_rank(const at::Tensor& values) {
  std::vector<int64_t> ranks(values.numel());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

TEST_CASE("ranks count from the largest value, in any order and repeated") {
  const at::Tensor values = at::tensor({3.F, -1.F, 8.F, 0.5F});
  CHECK(order_statistics(values, std::vector<int64_t>{0, 3, 1, 1, 2}) == std::vector<double>{8, -1, 3, 3, 0.5});
  CHECK(order_statistics(values, {}).empty());
  CHECK(order_statistics(at::tensor({2.5}, at::kDouble), std::vector<int64_t>{0}) == std::vector<double>{2.5});
}

TEST_CASE("order statistics are those of a full sort, for values of every kind") {
  const int64_t threads = at::get_num_threads();
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    at::manual_seed(11);
    const auto options = at::TensorOptions(dtype);
    const at::Tensor normal = at::randn({37, 41}, options);
    at::Tensor special = at::randint(-3, 4, {37, 41}, options);
    special.view({-1}).slice(0, 0, at::nullopt, 5).fill_(kInfiniteKey);
    special.view({-1}).slice(0, 1, at::nullopt, 7).fill_(-kInfiniteKey);
    special.view({-1}).slice(0, 2, at::nullopt, 11).fill_(kNan);
    special.view({-1}).slice(0, 3, at::nullopt, 13).fill_(-kNan);
    special.view({-1}).slice(0, 4, at::nullopt, 17).fill_(-0.);
    const std::vector<at::Tensor> cases{normal,
                                        at::softmax(3 * normal, 1),
                                        at::randint(3, {37, 41}, options),
                                        at::full({37, 41}, -0.25, options),
                                        1 + normal * (dtype == at::kFloat ? 1e-6 : 1e-14),
                                        normal * (dtype == at::kFloat ? 1e-40 : 1e-310),
                                        at::exp(40 * normal),
                                        special,
                                        normal.t(),
                                        normal.slice(1, 3, 30, 2)};
    for (size_t i = 0; i < cases.size(); ++i) {
      // With many threads fewer prefixes go into one pass.
      for (const int64_t pool : {int64_t{1}, int64_t{20}}) {
        at::set_num_threads(static_cast<int>(pool));
        CAPTURE(dtype, i, pool);
        check_against_full_sort(cases[i], every_rank(cases[i]));
        check_against_full_sort(cases[i], {0, 1, 40, cases[i].numel() - 1, 40});
      }
    }
  }
  at::set_num_threads(static_cast<int>(threads));
}

TEST_CASE("order statistics of several threads are those of a full sort") {
  const int64_t threads = at::get_num_threads();
  at::set_num_threads(2);
  at::manual_seed(12);
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor values = at::softmax(3 * at::randn({700, 1000}, dtype), 1);
    check_against_full_sort(values, {699, 700, 1399, 1400, 3499, 3500, 6999, 7000, 350000, 699999});
  }
  at::set_num_threads(static_cast<int>(threads));
}

TEST_CASE("NaN of either sign is the largest value, as in at::topk") {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor values = at::tensor({1., kNan, kInfiniteKey, -kNan, -kInfiniteKey}, dtype);
    const std::vector<double> found = order_statistics(values, std::vector<int64_t>{0, 1, 2, 3, 4});
    CHECK(std::isnan(found[0]));
    CHECK(std::isnan(found[1]));
    CHECK(found[2] == kInfiniteKey);
    CHECK(found[3] == 1);
    CHECK(found[4] == -kInfiniteKey);
    CHECK(std::get<0>(at::topk(values, 2)).isnan().all().item<bool>());
  }
}

TEST_CASE("zeros of both signs are one value, given without a sign") {
  const std::vector<double> found = order_statistics(at::tensor({-0.F, 0.F, -0.F, 1.F}), std::vector<int64_t>{1, 2, 3});
  for (const double zero : found) {
    CHECK(zero == 0);
    CHECK_FALSE(std::signbit(zero));
  }
}

TEST_CASE("average-K thresholds lie where at::topk of all values puts them") {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    at::manual_seed(seed);
    const at::ScalarType dtype = seed % 2 ? at::kFloat : at::kDouble;
    const at::Tensor scores = at::randn({50, 30}, dtype);
    const at::Tensor values = seed % 3 == 0 ? scores : seed % 3 == 1 ? at::softmax(scores, 1) : scores.round();
    for (const double k : {0.02, 0.5, 1.0, 2.0, 4.99, 29.98}) {
      const int64_t kept = values_in_sets(k, 50, 30);
      const at::Tensor largest = std::get<0>(at::topk(values.flatten(), kept + 1)).to(at::kDouble);
      const double upper = largest[kept - 1].item<double>(), lower = largest[kept].item<double>();
      const double middle = std::midpoint(upper, lower);
      CAPTURE(seed, k);
      CHECK(average_k_thresholds(values, std::vector<double>{k}, Ties::kKeepAll).at(0) ==
            (middle > lower ? middle : upper));
      CHECK(average_k_thresholds(values, std::vector<double>{k}, Ties::kStrict).at(0) ==
            (middle < upper ? middle : lower));
    }
  }
}

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
  // There are two pairs of neighbours: rounding takes the midpoint of one up, and of the other down.
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
