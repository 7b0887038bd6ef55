#include "losses/kernels/softmax_kernels.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/catch2.h"

namespace settrain {
namespace {

std::vector<double> softmax_of(InstructionSet set, const std::vector<double>& scores) {
  std::vector<double> probabilities(scores.size());
  REQUIRE(SETTRAIN_PICK(set, softmax_row)(scores.data(), std::ssize(scores), probabilities.data()));
  return probabilities;
}

template <class T>
std::vector<T> some_scores(int64_t classes, double deviation) {
  at::manual_seed(static_cast<uint64_t>(classes));
  const at::Tensor scores = at::randn({classes}, at::kDouble).mul(deviation).to(c10::CppTypeToScalarType<T>::value);
  return {scores.const_data_ptr<T>(), scores.const_data_ptr<T>() + classes};
}

TEST_CASE("a row's softmax is that of float64 within its rounding") {
  const double least = 2.0 * std::numeric_limits<double>::min();
  for (const int64_t classes : {1, 2, 15, 16, 63, 64, 65, 100, 128, 1000, 1081}) {
    for (const double deviation : {0.0, 1.0, 20.0, 300.0}) {
      const std::vector<double> scores = some_scores<double>(classes, deviation);
      const std::vector<double> found = softmax_of(instruction_set(), scores);
      const at::Tensor expected = at::softmax(at::tensor(scores, at::kDouble), 0);
      const double largest = *std::max_element(scores.begin(), scores.end());
      for (int64_t c = 0; c < classes; ++c) {
        const double p = expected[c].item<double>(), ours = found[static_cast<size_t>(c)];
        CAPTURE(classes, deviation, c, p, ours);
        const double units = 3 + largest - scores[static_cast<size_t>(c)];
        CHECK(std::abs(ours - p) <= units * std::numeric_limits<double>::epsilon() * p + least);
      }
    }
  }
}

TEST_CASE("a row's softmax has the same bits by every instruction set") {
  for (const InstructionSet set : {InstructionSet::kBaseline, InstructionSet::kAvx2}) {
    if (set > instruction_set()) continue;
    for (const int64_t classes : {3, 64, 1000}) {
      const std::vector<double> scores = some_scores<double>(classes, 5);
      CHECK(softmax_of(set, scores) == softmax_of(instruction_set(), scores));
    }
  }
}

TEST_CASE("the same scores in another order have the same probabilities to the last bit") {
  for (const int64_t classes : {3, 17, 100, 1081}) {
    for (const double deviation : {0.3, 3.0, 30.0}) {
      std::vector<double> scores = some_scores<double>(classes, deviation), sorted = scores;
      std::sort(sorted.begin(), sorted.end());
      std::vector<double> expected = softmax_of(instruction_set(), scores);
      std::sort(expected.begin(), expected.end());
      CAPTURE(classes, deviation);
      CHECK(softmax_of(instruction_set(), sorted) == expected);
      std::rotate(sorted.begin(), sorted.begin() + classes / 3, sorted.end());
      std::vector<double> rotated = softmax_of(instruction_set(), sorted);
      std::sort(rotated.begin(), rotated.end());
      CHECK(rotated == expected);
    }
  }
}

TEST_CASE("sets by float32 are right but for its error, and say where that decides") {
  for (const int64_t classes : {1, 2, 63, 64, 65, 1000, 20000}) {
    for (const double deviation : {0.0, 1.0, 20.0, 300.0}) {
      CAPTURE(classes, deviation);
      std::vector<float> scores = some_scores<float>(classes, deviation);
      const std::vector<double> wide(scores.begin(), scores.end());
      const at::Tensor exact = at::log_softmax(at::tensor(wide, at::kDouble), 0);
      const at::Tensor error = exact.abs().mul(2e-7).add(1e-5 + 2e-9 * static_cast<double>(classes));
      const at::Tensor below = exact.sub(error).to(at::kFloat), above = exact.add(error).to(at::kFloat);
      const auto limits = [](const at::Tensor& x) { return x.const_data_ptr<float>(); };
      const at::Tensor set = at::empty({classes}, at::kBool);
      const auto sets = SETTRAIN_PICK(instruction_set(), softmax_set);
      CHECK(sets(scores.data(), classes, limits(below), limits(below), set.mutable_data_ptr<bool>()));
      CHECK(set.all().item<bool>());
      CHECK(sets(scores.data(), classes, limits(above), limits(above), set.mutable_data_ptr<bool>()));
      CHECK_FALSE(set.any().item<bool>());
      CHECK_FALSE(sets(scores.data(), classes, limits(below), limits(above), set.mutable_data_ptr<bool>()));
      scores.back() = std::numeric_limits<float>::quiet_NaN();
      CHECK_FALSE(sets(scores.data(), classes, limits(below), limits(below), set.mutable_data_ptr<bool>()));
    }
  }
}

TEST_CASE("a score that is not finite is reported, the largest numbers are not") {
  constexpr double kLargest = std::numeric_limits<double>::max(), kInfinity = std::numeric_limits<double>::infinity();
  const auto softmax = SETTRAIN_PICK(instruction_set(), softmax_row);
  for (const size_t classes : {1, 16, 70}) {
    for (const size_t place : {size_t{0}, classes - 1}) {
      std::vector<double> scores = some_scores<double>(static_cast<int64_t>(classes), 1), probabilities(classes);
      for (const double value : {kLargest, -kLargest, 0.0}) {
        scores[place] = value;
        CHECK(softmax(scores.data(), std::ssize(scores), probabilities.data()));
        for (const double p : probabilities) CHECK((p >= 0 && p <= 1));
      }
      for (const double value : {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
        scores[place] = value;
        CHECK_FALSE(softmax(scores.data(), std::ssize(scores), probabilities.data()));
      }
    }
  }
}

}  // namespace
}  // namespace settrain
