#include "metrics/count_bins.h"

#include "tests/support/catch2.h"

namespace settrain {
namespace {

std::vector<std::string> names_of(const config::Integers& bounds) {
  std::vector<std::string> names;
  for (const CountBin& bin : CountBinOptions{bounds}.bins()) names.push_back(bin.name);
  return names;
}

TEST_CASE("bins are named after the counts that they hold") {
  CHECK(names_of({10, 50}) == std::vector<std::string>{"bin0_9", "bin10_49", "bin50"});
  CHECK(names_of({1}) == std::vector<std::string>{"bin0_0", "bin1"});
  CHECK(names_of({}).empty());
}

TEST_CASE("every number of training images is in one bin") {
  const std::vector<CountBin> bins = CountBinOptions{{10, 50, 500, 2000}}.bins();
  const auto bin_of = [&bins](int64_t train_count) {
    std::string held_by;
    for (const CountBin& bin : bins) {
      if (bin.holds(train_count)) held_by += bin.name + " ";
    }
    return held_by;
  };
  CHECK(bin_of(0) == "bin0_9 ");
  CHECK(bin_of(9) == "bin0_9 ");
  CHECK(bin_of(10) == "bin10_49 ");
  CHECK(bin_of(49) == "bin10_49 ");
  CHECK(bin_of(50) == "bin50_499 ");
  CHECK(bin_of(1999) == "bin500_1999 ");
  CHECK(bin_of(2000) == "bin2000 ");
  CHECK(bin_of(1000000) == "bin2000 ");
}

}  // namespace
}  // namespace settrain
