#include "src/loader/kernels/resize_kernels.h"

#include <algorithm>
#include <vector>

#include "src/core/random.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

constexpr int32_t kOne = 1 << 22;

// Random bytes; every third number of rows is 0 or 255, where rounding is clamped.
std::vector<uint8_t> random_bytes(size_t size, uint32_t number) {
  std::vector<uint8_t> bytes;
  for (uint32_t i = 0; i < size; ++i) {
    const uint32_t word = random_words(3, Stream::kSynthetic, i, number)[0];
    bytes.push_back(static_cast<uint8_t>(number % 3 == 0 ? (word & 1) * 255 : word));
  }
  return bytes;
}

// `count` weights that add up to 2^22, but for the last bits. From three on the outer ones are negative, so that sums
// reach beyond 8 bits.
std::vector<int32_t> weights_of(int32_t count) {
  std::vector<int32_t> weights(static_cast<size_t>(count), kOne / count + 1);
  if (count < 3) return weights;
  for (int32_t& weight : weights) weight = (kOne + kOne / 4) / (count - 2);
  weights.front() = weights.back() = -kOne / 8;
  return weights;
}

uint8_t rounded(int64_t sum) {
  return static_cast<uint8_t>(std::clamp<int64_t>((sum + kOne / 2) >> 22, 0, 255));
}

}  // namespace

TEST_CASE("any number of rows and channels is resized as by the formula") {
  constexpr int64_t kWidth = 40, kCount = 37;
  for (const int64_t channels : {1, 3}) {
    for (int64_t num_rows = 1; num_rows <= 9; ++num_rows) {
      const auto bytes =
          random_bytes(static_cast<size_t>(num_rows * kWidth * channels + 1), static_cast<uint32_t>(num_rows));
      std::vector<std::vector<int32_t>> weights;
      for (int32_t count = 1; count <= 4; ++count) weights.push_back(weights_of(count));
      std::vector<const uint8_t*> rows;
      for (int64_t r = 0; r < num_rows; ++r) rows.push_back(bytes.data() + r * kWidth * channels);
      std::vector<PixelTaps> taps;
      for (int64_t i = 0; i < kCount; ++i) {
        const auto& used = weights[static_cast<size_t>(i % 4)];
        taps.push_back({i, used.data(), static_cast<int32_t>(used.size())});
      }
      std::vector<uint8_t> out(static_cast<size_t>(num_rows * kCount * channels + 1), 77);
      resize_rows(rows.data(), num_rows, taps.data(), kCount, channels, out.data());
      int64_t wrong = 0;
      for (int64_t r = 0; r < num_rows; ++r) {
        for (int64_t i = 0; i < kCount; ++i) {
          for (int64_t c = 0; c < channels; ++c) {
            int64_t sum = 0;
            for (int64_t k = 0; k <= i % 4; ++k)
              sum += int64_t{rows[static_cast<size_t>(r)][(i + k) * channels + c]} *
                     taps[static_cast<size_t>(i)].weights[k];
            wrong += out[static_cast<size_t>((r * kCount + i) * channels + c)] != rounded(sum);
          }
        }
      }
      CAPTURE(channels, num_rows);
      CHECK(wrong == 0);
      CHECK(out.back() == 77);
    }
  }
}

TEST_CASE("rows of any length are mixed as by the formula") {
  for (const int64_t length : {1, 31, 32, 33, 63, 64, 200}) {
    for (const int32_t count : {1, 2, 5}) {
      std::vector<std::vector<uint8_t>> bytes;
      std::vector<const uint8_t*> rows;
      for (int32_t k = 0; k < count; ++k)
        bytes.push_back(random_bytes(static_cast<size_t>(length), static_cast<uint32_t>(length + k)));
      for (const auto& row : bytes) rows.push_back(row.data());
      const std::vector<int32_t> weights = weights_of(count);
      std::vector<uint8_t> out(static_cast<size_t>(length + 1), 77), expected;
      mix_rows(rows.data(), weights.data(), count, length, out.data());
      for (int64_t j = 0; j < length; ++j) {
        int64_t sum = 0;
        for (int32_t k = 0; k < count; ++k)
          sum += int64_t{rows[static_cast<size_t>(k)][j]} * weights[static_cast<size_t>(k)];
        expected.push_back(rounded(sum));
      }
      expected.push_back(77);
      CAPTURE(length, count);
      CHECK(out == expected);
    }
  }
}
