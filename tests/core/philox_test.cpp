#include "src/core/philox.h"

#include <array>

#include "src/core/random.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Words = std::array<uint32_t, 4>;

Words words_of(const PhiloxBlock& counter, PhiloxKey key) {
  const PhiloxBlock block = philox(counter, key);
  return {block.word[0], block.word[1], block.word[2], block.word[3]};
}

TEST_CASE("Philox4x32-10 gives Random123's published answers") {
  CHECK(words_of({{0, 0, 0, 0}}, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(words_of({{~0U, ~0U, ~0U, ~0U}}, ~uint64_t{0}) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(words_of({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("Philox runs at compile time") {
  STATIC_REQUIRE(philox({{0, 0, 0, 0}}, 0).word[0] == 0x6627e8d5);
}

TEST_CASE("Streams of one seed and seeds of one stream differ") {
  const Words words = random_words(4, Stream::kShuffle, 1, 2, 3, 4);
  CHECK(words == random_words(4, Stream::kShuffle, 1, 2, 3, 4));
  CHECK(words != random_words(4, Stream::kSplit, 1, 2, 3, 4));
  CHECK(words != random_words(5, Stream::kShuffle, 1, 2, 3, 4));
  CHECK(words != random_words(4, Stream::kShuffle, 2, 2, 3, 4));
  CHECK(words != random_words(4, Stream::kShuffle, 1, 3, 3, 4));
  CHECK(words != random_words(4, Stream::kShuffle, 1, 2, 4, 4));
  CHECK(words != random_words(4, Stream::kShuffle, 1, 2, 3, 5));
}

TEST_CASE("uniform_below covers its range and no more") {
  CHECK(uniform_below(0U, 10U) == 0);
  CHECK(uniform_below(~0U, 10U) == 9);
  CHECK(uniform_below(0x80000000U, 10U) == 5);
  CHECK(uniform_below(~0U, ~0U, 10U) == 9);
  CHECK(uniform_below(~0U, ~0U, ~0U) == ~0U - 1);
  CHECK(uniform_below(0x19999999U, 0x99999999U, 10U) == 0);  // one below 2^64 / 10
  CHECK(uniform_below(0x19999999U, 0x9999999AU, 10U) == 1);

  std::array<int, 7> counts{};
  for (uint32_t i = 0; i < 70000; ++i) {
    const Words words = random_words(1, Stream::kShuffle, i);
    ++counts[uniform_below(words[0], words[1], 7)];
  }
  for (const int count : counts) CHECK(std::abs(count - 10000) < 500);  // five standard deviations
}

TEST_CASE("unit_double is in [0, 1)") {
  CHECK(unit_double(0, 0) == 0.0);
  CHECK(unit_double(0x80000000U, 0) == 0.5);
  CHECK(unit_double(~0U, ~0U) == 1.0 - 0x1p-53);
}

}  // namespace
}  // namespace settrain
