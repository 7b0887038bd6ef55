#include "src/loader/transform.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "tests/support/catch2.h"

using namespace settrain;

namespace {

const Normalisation kIdentity{{0.0F}, {1.0F}};

// Grey, its pixels numbered from 1; 0 is left for the border.
Image numbered(int64_t height, int64_t width) {
  Image image{height, width, 1, {}};
  for (int64_t i = 1; i <= height * width; ++i) image.pixels.push_back(static_cast<uint8_t>(i));
  return image;
}

// One image under every id.
class OneImage : public ImageSource {
 public:
  explicit OneImage(Image image) : image_(std::move(image)) {}
  int64_t size() const override { return 1 << 20; }
  void read(int64_t, Image& image) const override { image = image_; }

 private:
  Image image_;
};

std::vector<float> apply(const Transform& transform, const Image& image, int64_t epoch, int64_t id) {
  const Pipeline& pipeline = transform.pipeline();
  std::vector<float> output(
      static_cast<size_t>(pipeline.views() * pipeline.height() * pipeline.width() * image.channels), -1.0F);
  TransformMemory memory;
  transform(OneImage(image), id, epoch, memory, output.data());
  return output;
}

// The pipeline plain for images of the size of `image`.
Transform plain(const Image& image, const Normalisation& normalisation, int64_t pad, bool flip, uint64_t seed) {
  PipelineOptions options;
  options.pad = pad;
  options.flip = flip ? config::Switch::kOn : config::Switch::kOff;
  return Transform(Pipeline(options, image.height, image.width, ViewUse::kTraining, seed), normalisation);
}

// The expected result of padding, cropping and flipping, computed in the plainest way.
std::vector<float> expected(const Image& image, int64_t down, int64_t right, bool flip) {
  std::vector<float> output;
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      const int64_t from_y = y + down, from_x = (flip ? image.width - 1 - x : x) + right;
      const bool inside = from_y >= 0 && from_y < image.height && from_x >= 0 && from_x < image.width;
      output.push_back(
          inside ? static_cast<float>(image.pixels[static_cast<size_t>(from_y * image.width + from_x)]) / 255 : 0);
    }
  }
  return output;
}

}  // namespace

TEST_CASE("channels become planes, scaled and normalised") {
  const Image image{1, 2, 3, {255, 0, 51, 0, 255, 102}};
  const Transform transform = plain(image, {{0.5F, 0.25F, 0.0F}, {0.5F, 0.25F, 2.0F}}, 0, false, 0);
  CHECK(apply(transform, image, 0, 0) == std::vector<float>{1.0F, -1.0F, -1.0F, 3.0F, 0.2F / 2, 0.4F / 2});
}

TEST_CASE("every crop and flip is possible, equally likely, and exact") {
  const Image image = numbered(3, 4);
  constexpr int64_t kPad = 2, kDraws = 20000;
  std::map<std::vector<float>, int64_t> counts;
  for (int64_t down = -kPad; down <= kPad; ++down) {
    for (int64_t right = -kPad; right <= kPad; ++right) {
      for (const bool flip : {false, true}) counts[expected(image, down, right, flip)] = 0;
    }
  }
  REQUIRE(counts.size() == 50);
  const Transform transform = plain(image, kIdentity, kPad, true, 7);
  for (int64_t id = 0; id < kDraws; ++id) {
    const auto output = apply(transform, image, 2, id);
    REQUIRE(counts.contains(output));
    ++counts[output];
  }
  const double sigma = std::sqrt(kDraws * 0.02 * 0.98);
  for (const auto& [output, count] : counts) CHECK(std::abs(static_cast<double>(count) - kDraws * 0.02) < 5 * sigma);
}

TEST_CASE("a border wider than the image is black") {
  const Image image = numbered(2, 3);
  const Transform transform = plain(image, {{0.5F}, {0.5F}}, 9, false, 1);
  int64_t black = 0;
  for (int64_t id = 0; id < 500; ++id) {
    const auto output = apply(transform, image, 0, id);
    black += std::all_of(output.begin(), output.end(), [](float value) { return value == -1.0F; });
  }
  CHECK(black > 250);  // 1 - (3/19) (5/19) of 500 is 479
  CHECK(black < 500);
}

TEST_CASE("an augmentation follows seed, epoch and sample") {
  const Image image = numbered(8, 8);
  const Transform transform = plain(image, kIdentity, 4, true, 7), other_seed = plain(image, kIdentity, 4, true, 8);
  const auto all = [&](const Transform& with, int64_t epoch, int64_t first_id) {
    std::vector<std::vector<float>> outputs;
    for (int64_t id = first_id; id < first_id + 10; ++id) outputs.push_back(apply(with, image, epoch, id));
    return outputs;
  };
  CHECK(all(transform, 3, 0) == all(transform, 3, 0));
  CHECK(all(transform, 3, 0) != all(transform, 4, 0));
  CHECK(all(transform, 3, 0) != all(transform, 3, 10));
  CHECK(all(transform, 3, 0) != all(other_seed, 3, 0));
}

TEST_CASE("without augmentation the epoch does not matter") {
  const Image image = numbered(5, 6);
  const Transform transform = plain(image, kIdentity, 0, false, 3);
  CHECK(apply(transform, image, 0, 1) == expected(image, 0, 0, false));
  CHECK(apply(transform, image, 9, 2) == expected(image, 0, 0, false));
}

TEST_CASE("ten crops lie one after the other, in torchvision's order") {
  Image image = numbered(7, 7);
  PipelineOptions options;
  options.pipeline = "imagenet2018";
  options.input_size = 4;
  options.resize_size = 7;
  const Transform transform(Pipeline(options, 0, 0, ViewUse::kTenCrops), kIdentity);
  const std::vector<float> output = apply(transform, image, 0, 0);
  REQUIRE(output.size() == 160);
  const auto first_row = [&](int64_t crop) {
    std::vector<int> row;
    for (int64_t x = 0; x < 4; ++x)
      row.push_back(static_cast<int>(std::lround(output[static_cast<size_t>(crop * 16 + x)] * 255)));
    return row;
  };
  // Row y starts with pixel 7 y + 1.
  const std::vector<std::vector<int>> expected{
      {1, 2, 3, 4}, {4, 5, 6, 7}, {22, 23, 24, 25}, {25, 26, 27, 28}, {17, 18, 19, 20}};  // centre: 1.5 to 2
  for (int64_t crop = 0; crop < 5; ++crop) {
    CHECK(first_row(crop) == expected[static_cast<size_t>(crop)]);
    std::vector<int> mirrored = first_row(crop + 5);
    std::reverse(mirrored.begin(), mirrored.end());
    CHECK(mirrored == expected[static_cast<size_t>(crop)]);
  }
}

TEST_CASE("images of other channels are refused") {
  const Transform transform = plain(numbered(2, 2), kIdentity, 0, false, 0);
  CHECK_THROWS_AS(apply(transform, Image{2, 2, 3, std::vector<uint8_t>(12)}, 0, 0), std::invalid_argument);
}
