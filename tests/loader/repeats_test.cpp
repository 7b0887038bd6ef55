// Repeated augmentation: data.augmentation.repeats.
#include <map>

#include "src/loader/sampler.h"
#include "tests/support/catch2.h"

using namespace settrain;

TEST_CASE("an epoch takes a part of the images, each several times in a row") {
  const std::vector<int64_t> labels(100, 0);
  const std::vector<Draw> once = epoch_order(labels, 4, 1);
  const std::vector<Draw> thrice = epoch_order(labels, 4, 1, {.repeats = 3});
  REQUIRE(thrice.size() == 100);
  for (size_t i = 0; i < thrice.size(); ++i) {
    CHECK(thrice[i].position == once[i / 3].position);
    CHECK(thrice[i].repetition == static_cast<int64_t>(i % 3));
  }
  CHECK((thrice != epoch_order(labels, 4, 2, {.repeats = 3})));
}

TEST_CASE("no repetition of an image comes twice when a sampler by class repeats it too") {
  std::vector<int64_t> labels(60, 0);
  labels[7] = 1;  // alone in its class
  std::map<int64_t, std::vector<int64_t>> repetitions;
  for (const Draw& draw : epoch_order(labels, 4, 0, {Sampling::kClassBalanced, 1, 2}))
    repetitions[draw.position].push_back(draw.repetition);
  CHECK(repetitions[7].size() > 20);
  for (auto& [position, numbers] : repetitions) {
    for (size_t i = 0; i < numbers.size(); ++i) CHECK(numbers[i] == static_cast<int64_t>(i));
  }
}

TEST_CASE("without a seed nothing is repeated") {
  const std::vector<Draw> order = epoch_order(std::vector<int64_t>(5, 0), std::nullopt, 0, {.repeats = 2});
  for (size_t i = 0; i < order.size(); ++i) CHECK((order[i] == Draw{static_cast<int64_t>(i), 0}));
}
