#include "src/core/mean_interval.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "tests/support/catch2.h"

using namespace settrain;

namespace {

using Values = std::vector<double>;

const double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("Mean, deviation and interval of three values, by hand") {
  const MeanInterval interval = mean_interval(Values{1, 2, 6});
  CHECK(interval.mean == Approx(3).epsilon(1e-15));
  CHECK(interval.deviation == Approx(std::sqrt((4 + 1 + 9) / 2.0)).epsilon(1e-15));
  CHECK(interval.half_width == Approx(4.302652729749464 * std::sqrt(7.0 / 3)).epsilon(1e-12));
  CHECK(interval.count == 3);
  CHECK(interval.has_interval());
  CHECK_FALSE(interval.deserves_warning());
}

TEST_CASE("Two values have an interval that deserves a warning, one has none") {
  const MeanInterval two = mean_interval(Values{0.5, 0.7});
  CHECK(two.deserves_warning());
  CHECK(two.half_width == Approx(12.706204736175 * 0.1).epsilon(1e-11));

  const MeanInterval single = mean_interval(Values{0.25});
  CHECK(single.mean == 0.25);
  CHECK_FALSE(single.has_interval());
  CHECK_FALSE(single.deserves_warning());
  CHECK(std::isnan(single.deviation));
  CHECK(std::isnan(single.half_width));

  CHECK_THROWS_AS(mean_interval(Values{}), std::invalid_argument);
}

TEST_CASE("Equal values have their value as the mean, and no width") {
  const MeanInterval interval = mean_interval(Values(7, 0.1));
  CHECK(interval.mean == 0.1);
  CHECK(interval.deviation == 0);
  CHECK(interval.half_width == 0);
}

TEST_CASE("Paired differences") {
  const MeanInterval interval = paired_difference(Values{3, 5, 10}, Values{2, 3, 4});
  const MeanInterval same = mean_interval(Values{1, 2, 6});
  CHECK(interval.mean == same.mean);
  CHECK(interval.half_width == same.half_width);
  CHECK(paired_difference(Values{0.1, 0.7}, Values{0.1, 0.7}).half_width == 0);
  CHECK_THROWS_AS(paired_difference(Values{1, 2}, Values{1}), std::invalid_argument);
}

TEST_CASE("A value that is undefined makes all undefined") {
  const MeanInterval interval = mean_interval(Values{0.5, kNan, 0.5});
  CHECK(std::isnan(interval.mean));
  CHECK(std::isnan(interval.half_width));
  CHECK(format_interval(interval, Unit::kFraction) == "-");
  CHECK(std::isnan(mean_interval(Values{kNan, 0.5, 0.5}).mean));
}

TEST_CASE("Intervals as text") {
  MeanInterval interval;
  interval.mean = 0.84511;
  interval.half_width = 0.0032;
  interval.count = 3;
  CHECK(format_interval(interval, Unit::kFraction) == "84.51 ± 0.32 (3 seeds)");
  CHECK(format_difference(interval, Unit::kFraction) == "+84.51 ± 0.32 (3 seeds)");
  interval.mean = -1.5;
  CHECK(format_interval(interval, Unit::kPlain) == "-1.5000 ± 0.0032 (3 seeds)");
  CHECK(format_interval(mean_interval(Values{0.84511}), Unit::kFraction) == "84.51 (1 seed)");
  CHECK(format_value(0.5, Unit::kFraction) == "50.00");
  CHECK(format_value(0.0043, Unit::kFraction, true) == "+0.43");
  CHECK(format_value(kNan, Unit::kPlain) == "-");
}

TEST_CASE("Accuracies are fractions, sizes and losses are not") {
  for (const char* name : {"top5", "test/top5", "val/macro_avg5", "few_top1", "test/bin10_49_avg5", "train/top1"}) {
    CHECK(unit_of(name) == Unit::kFraction);
  }
  for (const char* name : {"avg5_size", "test/avg5_size", "val/avg5_lambda", "train/loss", "train/lr"}) {
    CHECK(unit_of(name) == Unit::kPlain);
  }
}
