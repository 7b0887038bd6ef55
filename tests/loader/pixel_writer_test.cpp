#include "src/loader/pixel_writer.h"

#include <ATen/ATen.h>

#include <cmath>

#include "tests/support/catch2.h"

using namespace settrain;

namespace {

const Normalisation kStatistics{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
// The inverse of such a deviation is no finite number.
const Normalisation kTinyDeviations{{0, 0.5F, 1}, {1e-39F, 1e-39F, 1e-39F}};
// With these the byte 255 becomes 1 + 2^-8 and 1 + 3 * 2^-8, halfway between two bfloat16 numbers.
const Normalisation kHalfway{{-1.0F / 256, -3.0F / 256, 0}, {1, 1, 1}};
constexpr int64_t kHeight = 5, kMostWidth = 52;

bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

// [height, width, 3]: of the largest width, every pixel value in every channel.
at::Tensor every_value(int64_t width) {
  return at::arange(kHeight * width * 3).remainder(256).to(at::kByte).view({kHeight, width, 3});
}

// [3, height, width], whatever the layout.
at::Tensor written(const PixelWriter& writer, at::ScalarType type, int64_t width, bool flip) {
  const at::Tensor pixels = every_value(width);
  at::Tensor image = at::zeros({1, 3, kHeight, width}, type);
  if (writer.format().channels_last) image = image.contiguous(at::MemoryFormat::ChannelsLast);
  for (int64_t y = 0; y < kHeight; ++y)
    writer.write_row(pixels[y].data_ptr<uint8_t>(), y, kHeight, width, flip, image.data_ptr());
  return image[0];
}

// As torchvision's ToTensor and Normalize: each operation in float32.
at::Tensor expected(const Normalisation& normalisation, int64_t width, bool flip) {
  const auto tensor = [](const std::vector<float>& values) { return at::tensor(values).view({3, 1, 1}); };
  const at::Tensor image = every_value(width).permute({2, 0, 1}).to(at::kFloat).div(255);
  const at::Tensor normalised = image.sub(tensor(normalisation.mean)).div(tensor(normalisation.std));
  return flip ? normalised.flip({2}) : normalised;
}

}  // namespace

TEST_CASE("rows become normalised numbers in both layouts, mirrored or not") {
  for (const bool channels_last : {false, true}) {
    const PixelWriter floats(kStatistics, {PixelType::kFloat, channels_last});
    const PixelWriter bfloats(kStatistics, {PixelType::kBFloat16, channels_last});
    const PixelWriter writer(kStatistics, {PixelType::kByte, channels_last});
    for (const bool flip : {false, true}) {
      for (const int64_t width : {int64_t{1}, int64_t{7}, int64_t{8}, int64_t{9}, int64_t{16}, kMostWidth}) {
        CAPTURE(channels_last, flip, width);
        const at::Tensor numbers = expected(kStatistics, width, flip);
        CHECK(at::equal(written(floats, at::kFloat, width, flip), numbers));
        CHECK(at::equal(written(bfloats, at::kBFloat16, width, flip), numbers.to(at::kBFloat16)));
        const at::Tensor bytes = every_value(width).permute({2, 0, 1});
        CHECK(at::equal(written(writer, at::kByte, width, flip), flip ? bytes.flip({2}) : bytes));
      }
    }
  }
}

TEST_CASE("numbers are computed where that gives the bits of a division") {
  std::vector<float> table;
  for (size_t c = 0; c < 3; ++c) {
    for (int value = 0; value < 256; ++value)
      table.push_back((static_cast<float>(value) / 255.0F - kStatistics.mean[c]) / kStatistics.std[c]);
  }
  for (const bool channels_last : {false, true}) {
    const EightPixels eight = eight_pixels(kStatistics.mean.data(), kStatistics.std.data(), channels_last);
    CHECK(computes_all(eight, table.data()) == has_avx2());
    std::vector<float> other = table;
    other[2 * 256 + 255] = std::nextafter(other[2 * 256 + 255], 0.0F);
    CHECK_FALSE(computes_all(eight, other.data()));

    const PixelWriter halves(kHalfway, {PixelType::kBFloat16, channels_last});
    const at::Tensor numbers = expected(kHalfway, kMostWidth, false).to(at::kBFloat16);
    CHECK(at::equal(written(halves, at::kBFloat16, kMostWidth, false), numbers));

    const PixelWriter writer(kTinyDeviations, {PixelType::kFloat, channels_last});
    CHECK(at::equal(written(writer, at::kFloat, kMostWidth, true), expected(kTinyDeviations, kMostWidth, true)));
  }
}

TEST_CASE("grey pixels") {
  const PixelWriter writer({{0.5F}, {0.25F}}, {});
  const std::vector<uint8_t> row{0, 255, 51};
  std::vector<float> image(6, -9.0F);
  writer.write_row(row.data(), 1, 2, 3, false, image.data());
  CHECK(image == std::vector<float>{-9, -9, -9, -2, 2, (0.2F - 0.5F) / 0.25F});
}
