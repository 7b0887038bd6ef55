#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <atomic>

#include "losses/ops/smoothed_topk.h"
#include "src/core/error.h"
#include "src/core/noise.h"
#include "src/core/normal.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr NoiseKey kKey{.seed = 4, .step = 17, .first_position = 32};

at::Tensor noise_of(const NoiseKey& key, int64_t batch = 3, int64_t draws = 5, int64_t classes = 10) {
  return gaussian_noise(key, batch, draws, classes, at::kCPU);
}

TEST_CASE("a step in the memory of the device is read where no kernel reads it") {
  const int64_t step = 17;
  const NoiseKey known{.seed = 4, .step = 17}, read{.seed = 4, .step_on_device = &step};
  CHECK(at::equal(gaussian_noise(read, 3, 2, 5, at::kCPU), gaussian_noise(known, 3, 2, 5, at::kCPU)));
}

TEST_CASE("The noise of a batch is normal(noise_word()) bit for bit, for any number of draws") {
  for (int64_t draws = 1; draws <= 9; ++draws) {
    for (const int64_t classes : {1, 2, 63, 64, 131}) {
      const at::Tensor noise = noise_of(kKey, 2, draws, classes);
      const float* value = noise.data_ptr<float>();
      int64_t different = 0;
      for (uint32_t row = 0; row < 2; ++row) {
        NoiseCounter counter = noise_counter(kKey, 2);
        counter.position += row;
        for (uint32_t draw = 0; draw < draws; ++draw) {
          for (uint32_t j = 0; j < classes; ++j) {
            different += *value++ != normal(noise_word(counter, j, draw, static_cast<uint32_t>(draws)));
          }
        }
      }
      CAPTURE(draws, classes);
      CHECK(different == 0);
    }
  }
}

TEST_CASE("Noise is reproducible, and another for every seed, step and position") {
  const at::Tensor noise = noise_of(kKey);
  CHECK(noise.scalar_type() == at::kFloat);
  CHECK(at::equal(noise, noise_of(kKey)));
  CHECK_FALSE(noise.eq(noise_of({5, 17, 32})).any().item<bool>());
  CHECK_FALSE(noise.eq(noise_of({4, 18, 32})).any().item<bool>());
  CHECK_FALSE(noise.eq(noise_of({4, 17, 35})).any().item<bool>());
  CHECK(at::equal(noise.slice(0, 1), noise_of({4, 17, 33}, 2)));
}

TEST_CASE("Noise does not depend on the number of threads") {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor alone = noise_of(kKey, 64, 5, 1000);
  at::set_num_threads(3);
  const at::Tensor together = noise_of(kKey, 64, 5, 1000);
  std::atomic<int> chunks = 0;
  at::parallel_for(0, 2, 1, [&](int64_t, int64_t) { ++chunks; });
  at::set_num_threads(threads);
  CHECK(at::equal(alone, together));
  CHECK(chunks == 2);  // at::parallel_for is serial in a build without OpenMP
}

TEST_CASE("Noise has mean 0 and variance 1, and its draws and classes are uncorrelated") {
  const at::Tensor noise = noise_of(kKey, 2000, 5, 10).to(at::kDouble).view({2000, 50});
  const at::Tensor covariance = at::mm(noise.t(), noise) / 2000;
  CHECK(noise.mean(0).abs().max().item<double>() < 0.1);  // about 4.5 standard errors
  CHECK((covariance - at::eye(50, at::kDouble)).abs().max().item<double>() < 0.15);
}

TEST_CASE("A step beyond 32 bits is refused") {
  CHECK_THROWS_AS(noise_of({.seed = 4, .step = int64_t{1} << 32, .first_position = 0}), ConfigError);
}

}  // namespace
}  // namespace settrain
