#include "src/report/png.h"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "datasets/decode_image.h"
#include "datasets/memory_images.h"
#include "src/report/thumbnail.h"

namespace settrain {
namespace {

Image some_image(int64_t height, int64_t width, int64_t channels) {
  Image image{height, width, channels, {}};
  for (int64_t i = 0; i < height * width * channels; ++i)
    image.pixels.push_back(static_cast<uint8_t>(i * i * 7 + i / 3));
  return image;
}

TEST_CASE("base64 is RFC 4648's", "[fast]") {
  CHECK(encode_base64("") == "");
  CHECK(encode_base64("f") == "Zg==");
  CHECK(encode_base64("fo") == "Zm8=");
  CHECK(encode_base64("foo") == "Zm9v");
  CHECK(encode_base64("foobar") == "Zm9vYmFy");
  CHECK(encode_base64("\xFF\xFE\xFD") == "//79");
}

TEST_CASE("a PNG begins as one, and other images are refused", "[fast]") {
  const std::string png = encode_png(some_image(3, 5, 3));
  CHECK(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  CHECK(png.substr(16, 10) == std::string("\0\0\0\5\0\0\0\3\10\2", 10));  // width, height, bits, RGB
  CHECK(png.substr(png.size() - 8, 4) == "IEND");
  CHECK_THROWS_AS(encode_png(some_image(3, 5, 2)), std::invalid_argument);
  CHECK_THROWS_AS(encode_png(Image{}), std::invalid_argument);
  CHECK_THROWS_AS(encode_png({2, 2, 1, {0, 0, 0}}), std::invalid_argument);
}

TEST_CASE("a PNG decodes to the pixels that it was made of", "[fast]") {
  if (decoder_version() == "none") return;  // a build without image decoding
  for (const int64_t channels : {1, 3}) {
    const Image image = some_image(7, 9, channels);
    const std::string png = encode_png(image);
    ImagePart part;
    decode_image(
        {reinterpret_cast<const uint8_t*>(png.data()), png.size()}, {channels, false},
        [](int64_t height, int64_t width) {
          return Box{0, 0, height, width};
        },
        part);
    CHECK(part.pixels.height == 7);
    CHECK(part.pixels.width == 9);
    CHECK(part.pixels.pixels == image.pixels);
  }
}

TEST_CASE("a thumbnail keeps small images and the proportions of large ones", "[fast]") {
  const Image small = some_image(5, 4, 3);
  const MemoryImages images(small.pixels, 5, 4, 3);
  CHECK(thumbnail(images, 0, 16).pixels == small.pixels);
  const Image wide = some_image(20, 40, 1);
  const Image shrunk = thumbnail(MemoryImages(wide.pixels, 20, 40, 1), 0, 16);
  CHECK(shrunk.width == 16);
  CHECK(shrunk.height == 8);
  CHECK(shrunk.pixels.size() == 128);
  CHECK(picture_uri(shrunk).starts_with("data:image/png;base64,iVBORw0KGgo"));
}

}  // namespace
}  // namespace settrain
