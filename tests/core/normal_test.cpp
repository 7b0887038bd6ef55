#include "src/core/normal.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/core/random.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr uint32_t kHalf = 0x80000000U;

/// The quantile of u = (word + 1/2)/2^32, by Newton's method on the logarithm of the tail.
double true_normal(uint32_t word) {
  const bool negative = word < kHalf;
  const double q = ((negative ? word : ~word) + 0.5) * 0x1p-32;
  double z = std::max(0.0, std::sqrt(-2 * std::log(q)) - 0.8);
  for (int i = 0; i < 60; ++i) {
    const double tail = 0.5 * std::erfc(z / std::sqrt(2.0));
    const double step = std::log(tail / q) * tail * std::sqrt(2 * M_PI) * std::exp(z * z / 2);
    z += step;
    if (std::abs(step) < 1e-14) break;
  }
  return negative ? -z : z;
}

/// Words of the lower half: the first 20,000, the last 20,000, and between them at steps that grow with the word.
std::vector<uint32_t> lower_half_scan() {
  std::vector<uint32_t> words;
  for (uint64_t word = 0; word < kHalf - 20000; word += 1 + word / 20000) words.push_back(static_cast<uint32_t>(word));
  for (uint32_t word = kHalf - 20000; word < kHalf; ++word) words.push_back(word);
  return words;
}

TEST_CASE("normal() is within 7e-7 of the true quantile") {
  double worst = 0;
  for (const uint32_t word : lower_half_scan()) {
    worst = std::max(worst, std::abs(static_cast<double>(normal(word)) - true_normal(word)));
  }
  CHECK(worst < 7e-7);
  CHECK(worst > 1e-8);  // float32 cannot be nearer: the scan has looked
}

TEST_CASE("normal() is antisymmetric, bounded and never decreases") {
  float previous = -kMaxNormal;
  int64_t steps_back = 0, asymmetric = 0;
  for (const uint32_t word : lower_half_scan()) {
    const float z = normal(word);
    steps_back += z < previous;
    asymmetric += normal(~word) != -z;
    previous = z;
  }
  CHECK(steps_back == 0);
  CHECK(asymmetric == 0);
  CHECK(previous <= 0.0F);
  CHECK(normal(0) == Approx(-6.337958).margin(1e-6));
  CHECK(normal(~0U) < kMaxNormal);
  CHECK(normal(kHalf) == Approx(0.0).margin(2e-7));

  for (uint32_t i = 0; i < 1000000; ++i) steps_back += normal(kHalf / 2 + i) > normal(kHalf / 2 + i + 1);
  CHECK(steps_back == 0);
}

TEST_CASE("Normals of Philox words have the moments of a standard normal") {
  constexpr int kBlocks = 500000;
  double sums[4] = {};
  for (uint32_t i = 0; i < kBlocks; ++i) {
    for (const uint32_t word : random_words(1, Stream::kLossNoise, i)) {
      const double z = normal(word);
      double power = 1;
      for (double& sum : sums) sum += power *= z;
    }
  }
  // Five standard errors each, of 2,000,000 draws.
  const double count = 4.0 * kBlocks, error = 5 / std::sqrt(count);
  CHECK(sums[0] / count == Approx(0).margin(error));
  CHECK(sums[1] / count == Approx(1).margin(error * std::sqrt(2.0)));
  CHECK(sums[2] / count == Approx(0).margin(error * std::sqrt(15.0)));
  CHECK(sums[3] / count == Approx(3).margin(error * std::sqrt(96.0)));
}

TEST_CASE("The bits of normal() are those of rng version 1") {
  uint64_t digest = 0xcbf29ce484222325;  // FNV-1a
  for (uint32_t i = 0; i < 65536; ++i) {
    digest = (digest ^ static_cast<uint32_t>(ScalarArithmetic::to_bits(normal(i * 65537)))) * 0x100000001b3;
  }
  CHECK(digest == 0xd87df81c7ef0eb8f);
}

}  // namespace
}  // namespace settrain
