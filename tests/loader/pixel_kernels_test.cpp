// The inner loops of operations on pixels, beside the plainest way to compute them. Lengths have every remainder.
#include "src/loader/kernels/pixel_kernels.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/core/random.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

std::vector<uint8_t> random_numbers(int64_t length, uint32_t which) {
  std::vector<uint8_t> numbers;
  for (uint32_t i = 0; i < length; ++i)
    numbers.push_back(static_cast<uint8_t>(random_words(1, Stream::kSynthetic, i, which)[0]));
  return numbers;
}

}  // namespace

TEST_CASE("blending moves each number from another one, and stays within a byte") {
  for (int64_t length = 0; length < 70; ++length) {
    for (const float factor : {0.0F, 0.3F, 1.0F, 1.7F, 11.0F}) {
      const auto other = random_numbers(length, 0), before = random_numbers(length, 1);
      std::vector<uint8_t> pixels = before;
      blend(other.data(), factor, length, pixels.data());
      int64_t wrong = 0;
      for (size_t j = 0; j < pixels.size(); ++j) {
        const float from = other[j], to = before[j], value = from + factor * (to - from);
        wrong += pixels[j] != static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F));
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("smoothing takes the rounded mean of nine, with weights 1 and 5") {
  for (const int64_t channels : {1, 3}) {
    for (int64_t width = 2; width < 40; ++width) {
      const int64_t length = width * channels;
      const auto above = random_numbers(length, 2), row = random_numbers(length, 3), below = random_numbers(length, 4);
      std::vector<uint8_t> out(row.size(), 0);
      smooth_row(above.data(), row.data(), below.data(), channels, width, out.data());
      int64_t wrong = 0;
      for (int64_t j = 0; j < length; ++j) {
        double expected = row[static_cast<size_t>(j)];
        if (j >= channels && j < length - channels) {
          double sum = 4 * expected;
          for (const auto* line : {&above, &row, &below}) {
            for (const int64_t k : {j - channels, j, j + channels}) sum += (*line)[static_cast<size_t>(k)];
          }
          expected = std::floor(sum / 13 + 0.5);
        }
        wrong += out[static_cast<size_t>(j)] != static_cast<uint8_t>(expected);
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("warping takes the pixel in which a place lies, and black beyond the image") {
  constexpr int64_t kHeight = 13, kWidth = 17;
  for (const int64_t channels : {1, 3}) {
    const auto image = random_numbers(kHeight * kWidth * channels, 5);
    for (uint32_t i = 0; i < 300; ++i) {
      const auto words = random_words(2, Stream::kSynthetic, i), more = random_words(3, Stream::kSynthetic, i);
      const auto number = [](uint32_t word, int64_t most) { return static_cast<int64_t>(word % (2 * most)) - most; };
      FixedAffine map{number(words[0], 20 << 16), number(words[1], 2 << 16), number(words[2], 2 << 16),
                      number(words[3], 20 << 16), number(more[0], 2 << 16),  number(more[1], 2 << 16)};
      if (i % 5 == 0) map.yx = 0;
      if (i % 10 == 0) map.xx = 1 << 16;
      std::vector<uint8_t> out(image.size(), 77);
      warp(image.data(), kHeight, kWidth, channels, map, out.data());
      int64_t wrong = 0;
      for (int64_t y = 0; y < kHeight; ++y) {
        for (int64_t x = 0; x < kWidth; ++x) {
          const int64_t from_x = (map.x0 + map.xx * x + map.xy * y) >> 16;
          const int64_t from_y = (map.y0 + map.yx * x + map.yy * y) >> 16;
          const bool inside = from_x >= 0 && from_x < kWidth && from_y >= 0 && from_y < kHeight;
          for (int64_t c = 0; c < channels; ++c) {
            const auto at = static_cast<size_t>((y * kWidth + x) * channels + c);
            const auto from = static_cast<size_t>((from_y * kWidth + from_x) * channels + c);
            wrong += out[at] != (inside ? image[from] : 0);
          }
        }
      }
      CAPTURE(i);
      CHECK(wrong == 0);
    }
  }
}
