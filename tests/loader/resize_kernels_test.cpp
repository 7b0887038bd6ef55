#include "src/loader/kernels/resize_kernels.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
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
  weights.front() = -kOne / 8 - 3;
  weights.back() = -kOne / 9;
  return weights;
}

// Bytes that end where the memory of the process does, so that reading one behind them ends it.
class GuardedBytes {
 public:
  explicit GuardedBytes(const std::vector<uint8_t>& bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t readable = (bytes.size() + page - 1) / page * page;
    size_ = readable + page;
    memory_ = static_cast<uint8_t*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(memory_ != MAP_FAILED);
    REQUIRE(mprotect(memory_ + readable, page, PROT_NONE) == 0);
    begin_ = memory_ + readable - bytes.size();
    std::copy(bytes.begin(), bytes.end(), begin_);
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  ~GuardedBytes() { munmap(memory_, size_); }

  uint8_t* data() const { return begin_; }

 private:
  uint8_t *memory_ = nullptr, *begin_ = nullptr;
  size_t size_ = 0;
};

// The first pixels of outputs that lie `distance` apart; of `crowded` ones all but the first lie one apart. Of 30
// pixels AVX-512, which reads 64 bytes for five outputs, leaves the row to AVX2.
std::vector<int64_t> first_pixels(int64_t count, int64_t distance, bool crowded) {
  std::vector<int64_t> firsts;
  for (int64_t i = 0; i < count; ++i) firsts.push_back(crowded && i > 1 ? firsts.back() + 1 : i * distance);
  return firsts;
}

uint8_t rounded(int64_t sum) {
  return static_cast<uint8_t>(std::clamp<int64_t>((sum + kOne / 2) >> 22, 0, 255));
}

}  // namespace

TEST_CASE("any number of rows and channels is resized as by the formula") {
  constexpr int32_t kMostWeights = 9;
  std::vector<std::vector<int32_t>> weights;
  for (int32_t count = 1; count <= kMostWeights; ++count) weights.push_back(weights_of(count));
  const int64_t distance = GENERATE(0, 1, 4, 30), count = GENERATE(1, 4, 5, 6, 37), channels = GENERATE(1, 3);
  const bool crowded = GENERATE(false, true);
  std::vector<PixelTaps> taps;
  int64_t width = 0;
  for (const int64_t first : first_pixels(count, distance, crowded)) {
    const auto& used = weights[taps.size() * 5 % kMostWeights];
    taps.push_back({first, used.data(), static_cast<int32_t>(used.size())});
    width = std::max(width, first + taps.back().count);
  }
  for (int64_t num_rows = 1; num_rows <= 9; ++num_rows) {
    std::deque<GuardedBytes> bytes;  // of each row
    std::vector<const uint8_t*> rows;
    for (int64_t r = 0; r < num_rows; ++r) {
      bytes.emplace_back(random_bytes(static_cast<size_t>(width * channels), static_cast<uint32_t>(num_rows + r)));
      rows.push_back(bytes.back().data());
    }
    const GuardedBytes out(std::vector<uint8_t>(static_cast<size_t>(num_rows * count * channels), 77));
    resize_rows(rows.data(), num_rows, taps.data(), count, channels, out.data());
    int64_t wrong = 0;
    for (int64_t r = 0; r < num_rows; ++r) {
      for (int64_t i = 0; i < count; ++i) {
        const PixelTaps& output = taps[static_cast<size_t>(i)];
        for (int64_t c = 0; c < channels; ++c) {
          int64_t sum = 0;
          for (int64_t k = 0; k < output.count; ++k)
            sum += int64_t{rows[static_cast<size_t>(r)][(output.first + k) * channels + c]} * output.weights[k];
          wrong += out.data()[(r * count + i) * channels + c] != rounded(sum);
        }
      }
    }
    CAPTURE(distance, count, channels, crowded, num_rows);
    CHECK(wrong == 0);
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
