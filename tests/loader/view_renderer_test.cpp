#include <numeric>
#include <stdexcept>

#include "src/core/random.h"
#include "src/loader/transform.h"
#include "tests/loader/render.h"
#include "tests/support/catch2.h"

using namespace settrain;
using test::render;

namespace {

using Pixels = std::vector<uint8_t>;

// Pixels 0, 1, 2, ... of `channels` channels.
Image counting(int64_t height, int64_t width, int64_t channels) {
  Image image{height, width, channels, Pixels(static_cast<size_t>(height * width * channels))};
  std::iota(image.pixels.begin(), image.pixels.end(), uint8_t{0});
  return image;
}

Image random_image(int64_t height, int64_t width, int64_t channels, uint32_t number) {
  Image image{height, width, channels, {}};
  for (uint32_t i = 0; i < height * width * channels; ++i)
    image.pixels.push_back(static_cast<uint8_t>(random_words(1, Stream::kSynthetic, i, number)[0]));
  return image;
}

View scaled(const Image& image, int64_t height, int64_t width) {
  return {{0, 0, image.height, image.width}, height, width, {0, 0, height, width}};
}

// The part of the image in `box`, as a decoder would give it.
ImagePart part_of(const Image& image, const Box& box) {
  ImagePart part{{box.height, box.width, image.channels, {}}, box.top, box.left};
  for (int64_t y = 0; y < box.height; ++y) {
    const auto first = image.pixels.begin() + ((box.top + y) * image.width + box.left) * image.channels;
    part.pixels.pixels.insert(part.pixels.pixels.end(), first, first + box.width * image.channels);
  }
  return part;
}

}  // namespace

TEST_CASE("a row shrinks to weighted means of all its pixels") {
  // From 4 to 2: weights 3, 3, 1 of 7 at the ends of a triangle of 4 pixels' width.
  const Image row{1, 4, 1, {10, 20, 40, 80}};
  // (30 + 60 + 40)/7 = 18.57, (20 + 120 + 240)/7 = 54.29
  CHECK(render(row, scaled(row, 1, 2)).pixels == Pixels{19, 54});
  const Image column{4, 1, 1, {10, 20, 40, 80}};
  CHECK(render(column, scaled(column, 2, 1)).pixels == Pixels{19, 54});
}

TEST_CASE("a row grows by interpolation, with its ends kept") {
  const Image row{1, 2, 3, {0, 100, 7, 200, 0, 7}};
  CHECK(render(row, scaled(row, 1, 4)).pixels == Pixels{0, 100, 7, 50, 75, 7, 150, 25, 7, 200, 0, 7});
}

TEST_CASE("bicubic pixels are Pillow's, cut off at 0 and 255") {
  // Recorded from Pillow 12.3, Image.resize(size, Image.BICUBIC).
  const auto bicubic = [](const Image& image, int64_t height, int64_t width) {
    View view = scaled(image, height, width);
    view.filter = Filter::kBicubic;
    return render(image, view).pixels;
  };
  const Image row{1, 6, 1, {0, 255, 0, 10, 200, 100}};
  CHECK(bicubic(row, 1, 3) == Pixels{116, 51, 137});
  CHECK(bicubic(row, 1, 9) == Pixels{0, 135, 239, 33, 0, 35, 183, 158, 93});
  Image both{4, 5, 1, {}};
  for (int i = 0; i < 20; ++i) both.pixels.push_back(static_cast<uint8_t>(37 * i * i + 11 * i));
  CHECK(bicubic(both, 6, 3) ==
        Pixels{8, 134, 123, 87, 122, 90, 190, 119, 96, 236, 150, 225, 166, 152, 237, 89, 144, 210});
}

TEST_CASE("both axes are scaled, and one colour stays that colour") {
  for (const auto& [height, width] : {std::pair{5, 7}, {31, 40}, {1, 1}, {12, 90}}) {
    const Image plain{17, 23, 3, Pixels(17 * 23 * 3, 201)};
    const Image resized = render(plain, scaled(plain, height, width));
    CHECK(resized.pixels == Pixels(static_cast<size_t>(height * width * 3), 201));
  }
  const Image same = counting(5, 6, 3);
  CHECK(render(same, whole_view(5, 6)).pixels == same.pixels);
}

TEST_CASE("a crop is a part of what is scaled, black outside it, mirrored at the end") {
  const Image row{1, 5, 1, {1, 2, 3, 4, 5}};
  View view = whole_view(1, 5);
  view.crop = {0, 1, 1, 3};
  CHECK(render(row, view).pixels == Pixels{2, 3, 4});
  view.crop = {-1, 3, 3, 4};
  CHECK(render(row, view).pixels == Pixels{0, 0, 0, 0, 4, 5, 0, 0, 0, 0, 0, 0});
  view.flip = true;
  CHECK(render(row, view).pixels == Pixels{0, 0, 0, 0, 0, 0, 5, 4, 0, 0, 0, 0});
  view.crop = {0, -9, 1, 4};  // nothing of it
  CHECK(render(row, view).pixels == Pixels{0, 0, 0, 0});
  view.crop = {1, 0, 1, 5};
  CHECK(render(row, view).pixels == Pixels{0, 0, 0, 0, 0});
}

TEST_CASE("a view of a part of the pixels is the part of the view of all") {
  uint32_t draw = 0;
  const auto random = [&draw](int64_t n) -> int64_t {
    return uniform_below(random_words(7, Stream::kSynthetic, draw++)[0], static_cast<uint32_t>(n));
  };
  for (uint32_t number = 0; number < 300; ++number) {
    const Image image = random_image(2 + random(40), 2 + random(40), number % 2 == 0 ? 3 : 1, number);
    View all;
    all.filter = number % 3 == 0 ? Filter::kBicubic : Filter::kBilinear;
    all.source.top = random(image.height);
    all.source.left = random(image.width);
    all.source.height = 1 + random(image.height - all.source.top);
    all.source.width = 1 + random(image.width - all.source.left);
    all.height = number % 5 == 0 ? all.source.height : 1 + random(50);
    all.width = number % 7 == 0 ? all.source.width : 1 + random(50);
    all.crop = {0, 0, all.height, all.width};
    const Image whole = render(image, all);

    View some = all;
    some.crop = {random(60) - 10, random(60) - 10, 1 + random(30), 1 + random(30)};
    const Image seen = render(part_of(image, needed_pixels(some)), some);
    View expected = whole_view(whole.height, whole.width);
    expected.crop = some.crop;
    CAPTURE(number);
    CHECK(seen.pixels == render(whole, expected).pixels);
  }
}

TEST_CASE("pixels that are not there are refused, and other channels") {
  const Image image = counting(4, 5, 3);
  const View view = whole_view(4, 5);
  CHECK_THROWS_AS(render(part_of(image, {0, 0, 4, 4}), view), std::invalid_argument);
  CHECK_THROWS_AS(render(part_of(image, {1, 0, 3, 5}), view), std::invalid_argument);
  Pixels out(60);
  const PixelWriter grey(test::identity(1), {PixelType::kByte, true});
  CHECK_THROWS_AS(ViewRenderer().render({image, 0, 0}, view, grey, out.data()), std::invalid_argument);
}
