#include "metrics/sets/score_rows.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "metrics/sets/calibrate.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

template <class T>
std::vector<int64_t> slow_order(const T* row, int64_t classes) {
  std::vector<int64_t> order(static_cast<size_t>(classes));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return row[a] > row[b]; });
  return order;
}

template <class T>
void check_rows(const at::Tensor& rows) {
  const int64_t classes = rows.size(1);
  DescendingRow<T> order(classes);
  for (int64_t i = 0; i < rows.size(0); ++i) {
    const T* row = rows.const_data_ptr<T>() + i * classes;
    const std::vector<int64_t> expected = slow_order(row, classes);
    order.start(row);
    std::vector<int64_t> found;
    for (int64_t rank = 0; rank < classes; ++rank) {
      found.push_back(order.at(rank));
      REQUIRE(order.sorted() > rank);
      CHECK(order.sorted() == std::count_if(row, row + classes, [&](T value) { return value >= order.bound(); }));
    }
    CHECK(found == expected);
  }
}

TEST_CASE("classes come in descending order, ties by their number") {
  at::manual_seed(3);
  for (const int64_t classes : {1, 2, 31, 65, 300, 1100}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      for (const at::Tensor& rows :
           {at::randn({4, classes}), at::randint(-2, 3, {4, classes}), at::randn({4, classes}).pow(15),
            at::zeros({2, classes}), at::randn({4, classes}).mul(5e37),
            at::randint(0, 2, {4, classes}).sub(1).mul(-0.0)}) {
        const at::Tensor typed = rows.to(dtype).contiguous();
        CAPTURE(classes, dtype);
        dtype == at::kFloat ? check_rows<float>(typed) : check_rows<double>(typed);
      }
    }
  }
}

TEST_CASE("probabilities that float64 has not keep the order of their logarithms, between images too") {
  // The first image is sure of one class, the second one is torn between two: log-probabilities of -1000, -900 and,
  // with log(1/2), -900.69, -700.69.
  const at::Tensor scores = at::tensor({0., -1000., -900., -5000., 0., 0., -900., -700.}, at::kDouble).view({2, 4});
  const at::Tensor p = probabilities_of(scores, ProbabilityKind::kSoftmax);
  CHECK(p[0][3].item<double>() > 0);
  CHECK(p[0][3].item<double>() < p[0][1].item<double>());
  CHECK(p[0][1].item<double>() < p[1][2].item<double>());
  CHECK(p[1][2].item<double>() < p[0][2].item<double>());
  CHECK(p[0][2].item<double>() < p[1][3].item<double>());
  CHECK(p[1][3].item<double>() == tail_exponential(-700 - std::log(2.0)));
}

TEST_CASE("many classes of the tail together stay behind one that is more probable than all of them") {
  constexpr int64_t kClasses = 300;
  at::Tensor scores = at::full({3, kClasses}, -2000., at::kDouble);
  scores.select(1, 0).fill_(0);
  scores[0][1] = -1000;
  scores[2][1] = -500;
  const auto behind_and_rest = [&](int64_t image) {
    std::pair<double, double> found;
    for_each_score_row<double>(scores, ProbabilityKind::kSoftmax, [&] {
      return [&, ranked = RankedRow<double>(kClasses)](const ScoreRow<double>& row) mutable {
        if (row.image != image) return;
        ranked.start(row);
        found = {ranked.entry(0).behind, row.rest(0)};
      };
    });
    return found;
  };
  const auto one_likelier = std::pair(tail_exponential(-1000), tail_exponential(-1000));
  const auto all_the_same = std::pair(tail_exponential(-2000), tail_exponential(-2000));
  CHECK(behind_and_rest(0) == one_likelier);
  CHECK(behind_and_rest(1) == all_the_same);
  const auto [behind, rest] = behind_and_rest(2);
  CHECK(behind == Approx(std::exp(-500.)));
  CHECK(rest == behind);
  CHECK(all_the_same < one_likelier);
}

TEST_CASE("a row far from its sample is sorted too") {
  at::Tensor rows = at::zeros({1, 1000});
  rows.slice(1, 1, at::nullopt, 2).copy_(at::arange(500).view({1, 500}));  // the sample sees zeros alone
  check_rows<float>(rows);
  rows.fill_(-1e30);
  rows[0][500] = 1e30;
  rows[0][17] = -3e38;
  check_rows<float>(rows);
}

}  // namespace
}  // namespace settrain
