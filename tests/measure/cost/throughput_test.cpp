#include "src/measure/cost/throughput.h"

#include "tests/support/catch2.h"

namespace settrain {
namespace {

TEST_CASE("the median is the middle value") {
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({5}) == 5);
  CHECK(median({4, 1, 3, 2}) == 2.5);
}

TEST_CASE("ratios are of the rounds that both were measured in") {
  CHECK(ratios({2, 9, 4}, {1, 3}) == std::vector<double>{2, 3});
}

TEST_CASE("images a second are over all steps") {
  CHECK(StepTimes{{0.5, 1.5}, 100, {}}.images_per_second() == Approx(50));
  CHECK(StepTimes{{0.5, 1.5}, 100, {}}.mean() == Approx(1));
}

}  // namespace
}  // namespace settrain
