#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <vector>

#include "src/loader/view.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

constexpr int64_t kDraws = 20000;

}  // namespace

TEST_CASE("random crops lie at every place alike") {
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;
  for (int64_t id = 0; id < kDraws; ++id) {
    const View view = random_crop(whole_view(10, 8), 7, 4, {3, 1, id});
    CHECK((view.crop.height == 7 && view.crop.width == 4));
    ++counts[{view.crop.top, view.crop.left}];
  }
  REQUIRE(counts.size() == 20);
  for (const auto& [place, count] : counts) {
    CHECK((place.first >= 0 && place.first <= 3 && place.second >= 0 && place.second <= 4));
    CHECK(std::abs(static_cast<double>(count) - kDraws / 20.0) < 5 * std::sqrt(kDraws / 20.0));
  }
  CHECK_THROWS_AS(random_crop(whole_view(10, 8), 11, 4, {}), std::invalid_argument);
}

TEST_CASE("resized crops have torchvision's areas and proportions") {
  // In a large square every draw fits unless its area is large: areas below 3/4 of the image always do.
  constexpr int64_t kSide = 4000;
  std::vector<double> areas, ratios;
  for (int64_t id = 0; id < kDraws; ++id) {
    const View view = random_resized_crop(kSide, kSide, 224, 160, {3, 1, id});
    CHECK((view.height == 224 && view.width == 160 && view.crop == Box{0, 0, 224, 160}));
    const Box& box = view.source;
    REQUIRE((box.top >= 0 && box.left >= 0 && box.top + box.height <= kSide && box.left + box.width <= kSide));
    areas.push_back(static_cast<double>(box.height * box.width) / (kSide * kSide));
    ratios.push_back(std::log(static_cast<double>(box.width) / static_cast<double>(box.height)));
  }
  const auto [least, most] = std::minmax_element(areas.begin(), areas.end());
  CHECK((*least > 0.0795 && *least < 0.082 && *most <= 1.0));
  const auto [narrow, wide] = std::minmax_element(ratios.begin(), ratios.end());
  CHECK((std::abs(*narrow + std::log(4.0 / 3)) < 0.001 && std::abs(*wide - std::log(4.0 / 3)) < 0.001));
  // Below 3/4 both are uniform: of the areas in [0.08, 0.74] half lie below 0.41.
  int64_t below_half = 0, below = 0, wider = 0;
  for (size_t i = 0; i < areas.size(); ++i) {
    if (areas[i] >= 0.74) continue;
    ++below;
    below_half += areas[i] < 0.41;
    wider += ratios[i] > 0;
  }
  const double sigma = std::sqrt(static_cast<double>(below)) / 2;
  CHECK(std::abs(static_cast<double>(below_half) - static_cast<double>(below) / 2) < 5 * sigma);
  CHECK(std::abs(static_cast<double>(wider) - static_cast<double>(below) / 2) < 5 * sigma);
}

TEST_CASE("where no draw fits, a resized crop is the largest in the centre") {
  // 20 times as wide as high: the smallest area, 0.08, needs more than the height at any proportion allowed.
  CHECK(random_resized_crop(10, 200, 8, 8, {}).source == Box{0, 93, 10, 13});
  CHECK(random_resized_crop(200, 10, 8, 8, {}).source == Box{93, 0, 13, 10});
  CHECK(random_resized_crop(1, 1, 8, 8, {}).source == Box{0, 0, 1, 1});
}

TEST_CASE("a draw follows seed, epoch, sample and repetition") {
  const auto box = [](const AugmentationKey& key) { return random_resized_crop(480, 640, 224, 224, key).source; };
  CHECK(box({1, 2, 3}) == box({1, 2, 3}));
  CHECK_FALSE(box({1, 2, 3}) == box({2, 2, 3}));
  CHECK_FALSE(box({1, 2, 3}) == box({1, 3, 3}));
  CHECK_FALSE(box({1, 2, 3}) == box({1, 2, 4}));
  CHECK_FALSE(box({1, 2, 3}) == box({1, 2, 3, 1}));
  CHECK_FALSE(box({1, 2, 3, 1}) == box({1, 2, 3, 2}));
  // Recorded: another crop or flip would change every run.
  const View view = random_crop(whole_view(10, 8), 7, 4, {3, 2, 5});
  CHECK(view.crop == Box{1, 4, 7, 4});
  CHECK(random_flip({3, 2, 5}));
}
