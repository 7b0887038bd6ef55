#include "src/data_tools/contact_sheet.h"

#include <stdexcept>

#include "datasets/decoding/decode_image.h"
#include "tests/plot/has_gnuplot.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;

TEST_CASE("a sheet of no images, or of images of several sizes, is refused") {
  const test::TemporaryFolder folder;
  const Image small{2, 2, 1, std::vector<uint8_t>(4)}, large{2, 3, 1, std::vector<uint8_t>(6)};
  CHECK_THROWS_AS(draw_contact_sheet("", {}, folder / "sheet.png"), std::invalid_argument);
  CHECK_THROWS_AS(draw_contact_sheet("", {{"row"}}, folder / "sheet.png"), std::invalid_argument);
  CHECK_THROWS_AS(draw_contact_sheet("", {{"row", {{small}, {large}}}}, folder / "sheet.png"), std::invalid_argument);
}

TEST_CASE("images are on the sheet as they are, enlarged by a whole number") {
  SKIP_UNLESS(test::has_gnuplot(), "there is no gnuplot");
  const test::TemporaryFolder folder;
  Image colour{64, 50, 3, {}}, grey{64, 50, 1, {}};
  for (uint32_t i = 0; i < 64 * 50; ++i) {
    for (const uint32_t factor : {7U, 3U, 1U}) colour.pixels.push_back(static_cast<uint8_t>(i * factor));
    grey.pixels.push_back(static_cast<uint8_t>(i * 5));
  }
  const auto file = folder / "sheet.png";
  draw_contact_sheet("a \"heading\"", {{"first", {{colour, {"rotate 9"}}, {grey}}}, {"second", {{grey}}}}, file);
  const std::string png = test::read_file(file);
  const std::vector<uint8_t> bytes(png.begin(), png.end());
  ImagePart sheet;
  const auto all = [](int64_t height, int64_t width) { return Box{0, 0, height, width}; };
  decode_image(bytes, {3, false}, all, sheet);
  // 50 pixels become 150, with 8 between them; below 26 rows of the heading and 20 of the row's title.
  CHECK(sheet.pixels.width == 8 + 2 * (150 + 8));
  int64_t wrong = 0;
  for (int64_t y = 0; y < 192; ++y) {
    for (int64_t x = 0; x < 150; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        const auto drawn = [&](int64_t left) {
          return sheet.pixels.pixels[static_cast<size_t>(((46 + y) * sheet.pixels.width + left + x) * 3 + c)];
        };
        const int64_t from = y / 3 * 50 + x / 3;
        wrong += drawn(8) != colour.pixels[static_cast<size_t>(from * 3 + c)];
        wrong += drawn(166) != grey.pixels[static_cast<size_t>(from)];
      }
    }
  }
  CHECK(wrong == 0);
}
