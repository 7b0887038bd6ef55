#include "src/report/thumbnail.h"

#include "datasets/dataset.h"
#include "datasets/decode_image.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

Image some_image(int64_t height, int64_t width, int64_t channels) {
  Image image{height, width, channels, {}};
  for (int64_t i = 0; i < height * width * channels; ++i)
    image.pixels.push_back(static_cast<uint8_t>(i * i * 7 + i / 3));
  return image;
}

TEST_CASE("a thumbnail keeps small images and the proportions of large ones") {
  const Image small = some_image(5, 4, 3);
  const MemoryImages images(small.pixels, 5, 4, 3);
  CHECK(thumbnail(images, 0, 16).pixels == small.pixels);
  const Image wide = some_image(20, 40, 1);
  const Image shrunk = thumbnail(MemoryImages(wide.pixels, 20, 40, 1), 0, 16);
  CHECK(shrunk.width == 16);
  CHECK(shrunk.height == 8);
  CHECK(shrunk.pixels.size() == 128);
}

TEST_CASE("a picture's URI holds a PNG in base64, from its first to its last byte") {
  if (decoder_version() == "none") return;  // a build without image files
  const std::string uri = picture_uri(some_image(3, 5, 3));
  CHECK(uri.starts_with("data:image/png;base64,iVBORw0KGgo"));
  // The end of every PNG, behind a multiple of three bytes, one byte more, or two.
  CHECK(
      (uri.ends_with("AAAAAElFTkSuQmCC") || uri.ends_with("AAAABJRU5ErkJggg==") || uri.ends_with("AAAASUVORK5CYII=")));
}

}  // namespace
}  // namespace settrain
