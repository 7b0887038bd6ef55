#include <stdexcept>

#include "datasets/decoding/decode_image.h"
#include "tests/support/catch2.h"

namespace settrain {

TEST_CASE("a PNG decodes to the pixels that it was made of") {
  for (const int64_t channels : {1, 3}) {
    Image image{7, 9, channels, {}};
    for (int64_t i = 0; i < 7 * 9 * channels; ++i) image.pixels.push_back(static_cast<uint8_t>(i * i * 7 + i / 3));
    const std::vector<uint8_t> pixels = image.pixels;
    const std::vector<uint8_t> png = encode_png(image);
    ImagePart part;
    decode_image(
        png, {channels, false},
        [](int64_t height, int64_t width) {
          return Box{0, 0, height, width};
        },
        part);
    CHECK(part.pixels.height == 7);
    CHECK(part.pixels.width == 9);
    CHECK(part.pixels.pixels == pixels);
    CHECK(image.pixels == pixels);
  }
  CHECK_THROWS_AS(encode_png({1, 1, 2, {0, 0}}), std::invalid_argument);
}

}  // namespace settrain
