#include "src/core/noise.h"

#include <set>

#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr NoiseKey kKey{.seed = 4, .step = 17, .first_position = 32};

TEST_CASE("Full blocks and shared blocks of draws lie where rng version 1 says") {
  const NoiseCounter counter = noise_counter(kKey, 8);
  const auto block = [&](uint32_t item, uint32_t index) {
    return philox({{item, index, 32, 17}}, 4 ^ static_cast<uint64_t>(Stream::kLossNoise));
  };
  CHECK(noise_word(counter, 9, 6, 8) == block(9, 1).word[2]);
  CHECK(noise_word(counter, 9, 3, 5) == block(9, 0).word[3]);
  CHECK(noise_word(counter, 9, 4, 5) == block(2, 1).word[1]);  // one draw left: four classes share a block
  CHECK(noise_word(counter, 9, 5, 6) == block(4, 1).word[3]);  // two left: two classes
  CHECK(noise_word(counter, 9, 6, 7) == block(9, 1).word[2]);  // three left: a block each
  CHECK(noise_word(counter, 9, 1, 2) == block(4, 0).word[3]);
}

TEST_CASE("No two draws, classes, positions or steps share a word") {
  for (uint32_t num_draws = 1; num_draws <= 9; ++num_draws) {
    std::set<uint32_t> words;
    size_t count = 0;
    for (int64_t step = 0; step < 2; ++step) {
      NoiseCounter counter = noise_counter({.seed = 1, .step = step, .first_position = 0}, 3);
      for (counter.position = 0; counter.position < 3; ++counter.position) {
        for (uint32_t class_index = 0; class_index < 10; ++class_index) {
          for (uint32_t draw = 0; draw < num_draws; ++draw, ++count) {
            words.insert(noise_word(counter, class_index, draw, num_draws));
          }
        }
      }
    }
    CHECK(words.size() == count);  // by chance two would be equal in one run of 30,000
  }
}

TEST_CASE("Steps and positions beyond 32 bits are refused") {
  constexpr int64_t limit = int64_t{1} << 32;
  CHECK(noise_counter({0, limit - 1, limit - 4}, 4).step == 0xFFFFFFFF);
  CHECK_THROWS_AS(noise_counter({0, limit, 0}, 1), ConfigError);
  CHECK_THROWS_AS(noise_counter({0, -1, 0}, 1), ConfigError);
  CHECK_THROWS_AS(noise_counter({0, 0, -1}, 1), ConfigError);
  CHECK_THROWS_WITH(noise_counter({0, 0, limit - 3}, 4), Catch::Contains("positions 4294967293 to 4294967296"));
}

TEST_CASE("The words of the noise are those of rng version 1") {
  const NoiseCounter counter = noise_counter(kKey, 1);
  uint64_t digest = 0xcbf29ce484222325;  // FNV-1a
  for (uint32_t num_draws = 1; num_draws <= 9; ++num_draws) {
    for (uint32_t class_index = 0; class_index < 100; ++class_index) {
      for (uint32_t draw = 0; draw < num_draws; ++draw) {
        digest = (digest ^ noise_word(counter, class_index, draw, num_draws)) * 0x100000001b3;
      }
    }
  }
  CHECK(digest == 0xb90869f5b97b1228);
}

}  // namespace
}  // namespace settrain
