#include "src/data_tools/contact_sheet.h"

#include <stdexcept>

#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;

TEST_CASE("a sheet of no images, or of images of several sizes, is refused") {
  const test::TemporaryFolder folder;
  const Image small{2, 2, 1, std::vector<uint8_t>(4)}, large{2, 3, 1, std::vector<uint8_t>(6)};
  CHECK_THROWS_AS(draw_contact_sheet("", {}, folder / "sheet.png"), std::invalid_argument);
  CHECK_THROWS_AS(draw_contact_sheet("", {{"row"}}, folder / "sheet.png"), std::invalid_argument);
  CHECK_THROWS_AS(draw_contact_sheet("", {{"row", {{small}, {large}}}}, folder / "sheet.png"), std::invalid_argument);
}
