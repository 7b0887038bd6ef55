#include "src/loader/pixel_writer.h"

#include <ATen/ATen.h>

#include "tests/support/catch2.h"

using namespace settrain;

namespace {

const Normalisation kStatistics{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
constexpr int64_t kHeight = 5, kWidth = 52;

// [height, width, 3]: every pixel value in every channel.
at::Tensor every_value() {
  return at::arange(kHeight * kWidth * 3).remainder(256).to(at::kByte).view({kHeight, kWidth, 3});
}

// [3, height, width], whatever the layout.
at::Tensor written(const PixelFormat& format, at::ScalarType type, bool flip) {
  const at::Tensor pixels = every_value();
  at::Tensor image = at::zeros({1, 3, kHeight, kWidth}, type);
  if (format.channels_last) image = image.contiguous(at::MemoryFormat::ChannelsLast);
  const PixelWriter writer(kStatistics, format);
  for (int64_t y = 0; y < kHeight; ++y)
    writer.write_row(pixels[y].data_ptr<uint8_t>(), y, kHeight, kWidth, flip, image.data_ptr());
  return image[0];
}

// As torchvision's ToTensor and Normalize: each operation in float32.
at::Tensor expected(bool flip) {
  const auto tensor = [](const std::vector<float>& values) { return at::tensor(values).view({3, 1, 1}); };
  const at::Tensor image = every_value().permute({2, 0, 1}).to(at::kFloat).div(255);
  const at::Tensor normalised = image.sub(tensor(kStatistics.mean)).div(tensor(kStatistics.std));
  return flip ? normalised.flip({2}) : normalised;
}

}  // namespace

TEST_CASE("rows become normalised numbers in both layouts, mirrored or not") {
  for (const bool channels_last : {false, true}) {
    for (const bool flip : {false, true}) {
      CAPTURE(channels_last, flip);
      CHECK(at::equal(written({PixelType::kFloat, channels_last}, at::kFloat, flip), expected(flip)));
      CHECK(at::equal(written({PixelType::kBFloat16, channels_last}, at::kBFloat16, flip),
                      expected(flip).to(at::kBFloat16)));
      const at::Tensor bytes = every_value().permute({2, 0, 1});
      CHECK(at::equal(written({PixelType::kByte, channels_last}, at::kByte, flip), flip ? bytes.flip({2}) : bytes));
    }
  }
}

TEST_CASE("grey pixels") {
  const PixelWriter writer({{0.5F}, {0.25F}}, {});
  const std::vector<uint8_t> row{0, 255, 51};
  std::vector<float> image(6, -9.0F);
  writer.write_row(row.data(), 1, 2, 3, false, image.data());
  CHECK(image == std::vector<float>{-9, -9, -9, -2, 2, (0.2F - 0.5F) / 0.25F});
}
