#include "src/loader/view.h"

#include "tests/support/catch2.h"

using namespace settrain;

TEST_CASE("the longer side is rounded down where the shorter is given") {
  const View tall = with_short_side(53, 37, 20);
  CHECK((tall.height == 28 && tall.width == 20));  // 28.6
  const View wide = with_short_side(10, 35, 15);
  CHECK((wide.height == 15 && wide.width == 52));  // 52.5
  CHECK(wide.crop == Box{0, 0, 15, 52});
  CHECK(wide.source == Box{0, 0, 10, 35});
}

TEST_CASE("half a pixel goes to the even number in the centre, and what lacks is shared") {
  CHECK(center_crop(whole_view(1, 8), 1, 3).crop == Box{0, 2, 1, 3});   // 2.5
  CHECK(center_crop(whole_view(1, 10), 1, 3).crop == Box{0, 4, 1, 3});  // 3.5
  CHECK(center_crop(whole_view(8, 1), 3, 1).crop == Box{2, 0, 3, 1});
  CHECK(center_crop(whole_view(1, 2), 1, 5).crop == Box{0, -1, 1, 5});  // 1.5 before, rounded down
  CHECK(center_crop(whole_view(1, 3), 2, 1).crop == Box{0, 1, 2, 1});
}

TEST_CASE("an image is scaled to just cover") {
  CHECK(covering(4, 8, 4, 4) == whole_view(4, 8));
  const View grown = covering(4, 8, 12, 7);
  CHECK((grown.height == 12 && grown.width == 24));
  const View shrunk = covering(100, 50, 10, 10);
  CHECK((shrunk.height == 20 && shrunk.width == 10));
  const View thin = covering(3, 5000, 8, 8);
  CHECK((thin.height == 8 && thin.width == 13333));
}

TEST_CASE("only the pixels under the filter are needed") {
  CHECK(needed_pixels(whole_view(5, 7)) == Box{0, 0, 5, 7});
  CHECK(needed_pixels(center_crop(whole_view(8, 8), 2, 4)) == Box{3, 2, 2, 4});
  // Half the size: an output pixel x has its centre at 2x + 1 and reaches 2 pixels to both sides.
  View half = {{10, 20, 40, 60}, 20, 30, {5, 6, 2, 3}};
  CHECK(needed_pixels(half) == Box{10 + 9, 20 + 11, 6, 8});
  // At the image's edge the filter is cut off, and what lies outside is black and needs nothing.
  half.crop = {-4, 27, 5, 9};
  CHECK(needed_pixels(half) == Box{10, 20 + 53, 3, 7});

  half.filter = Filter::kBicubic;  // twice as far
  half.crop = {5, 6, 2, 3};
  CHECK(needed_pixels(half) == Box{10 + 7, 20 + 9, 10, 12});

  View first = whole_view(20, 20), second = first;
  first.crop = {1, 2, 3, 4};
  second.crop = {0, 5, 2, 6};
  CHECK(needed_pixels(std::vector<View>{first, second}) == Box{0, 2, 4, 9});
}
