#include "datasets/resize.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <stdexcept>

using namespace settrain;

namespace {

using Pixels = std::vector<uint8_t>;

// Pixels 0, 1, 2, ... of `channels` channels.
Image counting(int64_t height, int64_t width, int64_t channels) {
  Image image{height, width, channels, Pixels(static_cast<size_t>(height * width * channels))};
  std::iota(image.pixels.begin(), image.pixels.end(), uint8_t{0});
  return image;
}

}  // namespace

TEST_CASE("a row shrinks to weighted means of all its pixels", "[fast]") {
  // From 4 to 2: weights 3, 3, 1 of 7 at the ends of a triangle of 4 pixels' width.
  const Image row{1, 4, 1, {10, 20, 40, 80}};
  // (30 + 60 + 40)/7 = 18.57, (20 + 120 + 240)/7 = 54.29
  CHECK(resize_bilinear(row, 1, 2).pixels == Pixels{19, 54});
  const Image column{4, 1, 1, {10, 20, 40, 80}};
  CHECK(resize_bilinear(column, 2, 1).pixels == Pixels{19, 54});
}

TEST_CASE("a row grows by interpolation, with its ends kept", "[fast]") {
  const Image row{1, 2, 3, {0, 100, 7, 200, 0, 7}};
  CHECK(resize_bilinear(row, 1, 4).pixels == Pixels{0, 100, 7, 50, 75, 7, 150, 25, 7, 200, 0, 7});
}

TEST_CASE("both axes are resized, and one colour stays that colour", "[fast]") {
  for (const auto& [height, width] : {std::pair{5, 7}, {31, 40}, {1, 1}, {12, 90}}) {
    const Image plain{17, 23, 3, Pixels(17 * 23 * 3, 201)};
    const Image resized = resize_bilinear(plain, height, width);
    CHECK((resized.height == height && resized.width == width && resized.channels == 3));
    CHECK(resized.pixels == Pixels(static_cast<size_t>(height * width * 3), 201));
  }
  const Image same = counting(5, 6, 3);
  CHECK(resize_bilinear(same, 5, 6).pixels == same.pixels);
  CHECK_THROWS_AS(resize_bilinear(same, 0, 4), std::invalid_argument);
}

TEST_CASE("the longer side is rounded down where the shorter is given", "[fast]") {
  const Image resized = resize_short_side(counting(53, 37, 1), 20);
  CHECK((resized.height == 28 && resized.width == 20));  // 28.6
  const Image wide = resize_short_side(counting(10, 35, 1), 15);
  CHECK((wide.height == 15 && wide.width == 52));  // 52.5
}

TEST_CASE("half a pixel goes to the even number in the centre, and black fills what lacks", "[fast]") {
  CHECK(center_crop(counting(1, 8, 1), 1, 3).pixels == Pixels{2, 3, 4});   // left 2.5
  CHECK(center_crop(counting(1, 10, 1), 1, 3).pixels == Pixels{4, 5, 6});  // left 3.5
  CHECK(center_crop(counting(8, 1, 1), 3, 1).pixels == Pixels{2, 3, 4});
  CHECK(center_crop(Image{1, 2, 1, {5, 6}}, 1, 5).pixels == Pixels{0, 5, 6, 0, 0});
  CHECK(center_crop(Image{1, 3, 1, {5, 6, 7}}, 2, 1).pixels == Pixels{6, 0});
}

TEST_CASE("a crop is a part of the image", "[fast]") {
  const Image image = counting(4, 5, 3);
  const Image part = crop(image, 1, 2, 2, 3);
  REQUIRE(part.pixels.size() == 18);
  for (int64_t y = 0; y < 2; ++y) {
    for (int64_t i = 0; i < 9; ++i) {
      CHECK(part.pixels[static_cast<size_t>(y * 9 + i)] ==
            image.pixels[static_cast<size_t>(((y + 1) * 5 + 2) * 3 + i)]);
    }
  }
  CHECK_THROWS_AS(crop(image, 3, 0, 2, 1), std::invalid_argument);
  CHECK_THROWS_AS(crop(image, 0, -1, 1, 1), std::invalid_argument);
}

TEST_CASE("images are scaled to cover, then cut in the centre", "[fast]") {
  // 4x8: black in columns 1 to 3, white elsewhere.
  Image wide{4, 8, 1, Pixels(32, 0)};
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 8; ++x) wide.pixels[static_cast<size_t>(y * 8 + x)] = x == 0 || x >= 4 ? 255 : 0;
  }
  const Image same = resize_and_crop(wide, 4, 4);  // columns 2 to 5
  for (int y = 0; y < 4; ++y)
    CHECK(Pixels(same.pixels.begin() + y * 4, same.pixels.begin() + y * 4 + 4) == Pixels{0, 0, 255, 255});
  const Image grown = resize_and_crop(wide, 12, 7);
  CHECK((grown.height == 12 && grown.width == 7));
  const Image thin = resize_and_crop(counting(3, 53, 1), 8, 8);
  CHECK((thin.height == 8 && thin.width == 8));
}
