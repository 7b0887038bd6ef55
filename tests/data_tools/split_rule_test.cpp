#include "src/core/error.h"
#include "src/data_tools/split_folder.h"
#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;

TEST_CASE("a tenth of a multiple of ten is exact") {
  const Fraction tenth("0.1", "--val");
  for (int64_t n = 0; n <= 300000; n += 10) REQUIRE(tenth.rounded_up(n) == n / 10);
  for (int64_t n = 1; n < 10; ++n) CHECK(tenth.rounded_up(n) == 1);
  CHECK(tenth.rounded_up(31) == 4);
  CHECK(tenth.nearest(34) == 3);
  CHECK(tenth.nearest(35) == 4);
  // The largest class that is counted, with the most digits.
  CHECK(Fraction("0.999999999", "--val").rounded_up(4294967295) == 4294967291);
}

TEST_CASE("fractions are decimal numbers between 0 and 1") {
  CHECK(Fraction(".25", "--val").rounded_up(8) == 2);
  CHECK(Fraction("0.5", "--val").text() == "0.5");
  for (const char* wrong :
       {"", "0", "1", "0.0", "1.5", "-0.1", "0.1x", "1e-1", "0,1", ".", "0.1.2", " 0.1", "nan", "0.0123456789"}) {
    CHECK_THROWS_AS(Fraction(wrong, "--val"), ConfigError);
  }
  CHECK_THROWS_WITH(Fraction("2", "--val"), Contains("--val") && Contains("'2'"));
}

TEST_CASE("the rule of Pl@ntNet-300K") {
  SplitRule rule;
  rule.kind = SplitRule::Kind::kPlantnet;
  CHECK(rule.sizes(4) == SplitSizes{});
  CHECK(rule.sizes(5) == SplitSizes{3, 1, 0, 1});
  CHECK(rule.sizes(10) == SplitSizes{8, 1, 0, 1});
  CHECK(rule.sizes(11) == SplitSizes{7, 2, 0, 2});
  CHECK(rule.sizes(30) == SplitSizes{24, 3, 0, 3});
}

TEST_CASE("without another rule a tenth is for each of validation, calibration and test") {
  const SplitRule rule;
  CHECK(rule.sizes(4) == SplitSizes{});
  CHECK(rule.sizes(5) == SplitSizes{2, 1, 1, 1});
  CHECK(rule.sizes(11) == SplitSizes{5, 2, 2, 2});
  CHECK(rule.sizes(80).calibration == 8);
  CHECK(rule.sizes(81) == SplitSizes{54, 9, 9, 9});
}

TEST_CASE("a class without an image to train on is left out") {
  SplitRule rule;
  rule.min_images = 0;
  for (const int64_t n : {0, 1, 2, 3}) CHECK(rule.sizes(n) == SplitSizes{});
  CHECK(rule.sizes(4) == SplitSizes{1, 1, 1, 1});
  rule.kind = SplitRule::Kind::kFractions;
  rule.val = Fraction("0.5", "--val");
  rule.test = Fraction("0.5", "--test");
  CHECK(rule.sizes(100) == SplitSizes{});
}

TEST_CASE("fractions are rounded to the nearest, and at least one") {
  SplitRule rule;
  rule.kind = SplitRule::Kind::kFractions;
  rule.test = Fraction("0.25", "--test");
  CHECK(rule.sizes(5) == SplitSizes{2, 1, 1, 1});
  CHECK(rule.sizes(14) == SplitSizes{8, 1, 1, 4});
  CHECK(rule.sizes(100) == SplitSizes{55, 10, 10, 25});
}
