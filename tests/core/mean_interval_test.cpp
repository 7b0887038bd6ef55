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

namespace {

struct TableValue {
  double confidence = 0;
  int64_t degrees = 0;
  double t = 0;
};

// By mpmath 1.3 with 30 digits: the root of its regularised incomplete beta function.
constexpr TableValue kTable[] = {
    {0.95, 1, 12.7062047361747},    {0.95, 2, 4.302652729749464},
    {0.95, 3, 3.18244630528371},    {0.95, 4, 2.776445105197794},
    {0.95, 9, 2.262157162798206},   {0.95, 10, 2.228138851986275},
    {0.95, 29, 2.045229642132704},  {0.95, 120, 1.979930405082441},
    {0.95, 999, 1.96234146113345},  {0.99, 1, 63.65674116287158},
    {0.99, 2, 9.924843200918293},   {0.99, 7, 3.499483297350494},
    {0.9, 5, 2.015048373333024},    {0.5, 1, 1.0},
    {0.5, 3, 0.7648923284043453},   {0.9999, 1, 6366.197671315936},
    {0.9999, 2, 99.99249984374453}, {0.9999, 60, 4.168565017864592},
};

}  // namespace

TEST_CASE("Quantiles of Student's t against table values") {
  for (const TableValue& row : kTable) {
    CAPTURE(row.confidence, row.degrees);
    // t is about c / (1 - c) times as sensitive as the confidence c, which is rounded to a double: for 0.9999 that is
    // 1e-12. Sums of half as many terms as there are degrees of freedom are rounded, too.
    const double tail = 1 - row.confidence, degrees = static_cast<double>(row.degrees);
    const double tolerance = std::numeric_limits<double>::epsilon() * (row.confidence / tail + degrees);
    CHECK(std::abs(student_t_quantile(row.confidence, row.degrees) / row.t - 1) < tolerance);
  }
}

TEST_CASE("Quantiles of Student's t in closed form") {
  for (const double confidence : {0.01, 0.3, 0.5, 0.8, 0.95, 0.999}) {
    CAPTURE(confidence);
    const double cauchy = std::tan(confidence * std::acos(-1.0) / 2);
    CHECK(student_t_quantile(confidence, 1) == Approx(cauchy).epsilon(1e-12));
    const double two = confidence * std::sqrt(2 / (1 - confidence * confidence));
    CHECK(student_t_quantile(confidence, 2) == Approx(two).epsilon(1e-12));
  }
}

TEST_CASE("With many degrees of freedom Student's t is nearly normal") {
  // Cornish and Fisher: z + (z^3 + z) / (4 n) + ...
  const double z = 1.959963984540054, n = 100000;
  CHECK(student_t_quantile(0.95, 100000) == Approx(z + (z * z * z + z) / (4 * n)).epsilon(1e-9));
}

TEST_CASE("Quantiles fall with the degrees of freedom and rise with the confidence") {
  for (int64_t degrees = 1; degrees < 60; ++degrees) {
    CHECK(student_t_quantile(0.95, degrees) > student_t_quantile(0.95, degrees + 1));
    CHECK(student_t_quantile(0.95, degrees) < student_t_quantile(0.96, degrees));
  }
}

TEST_CASE("Confidences and degrees of freedom that mean nothing") {
  for (const double confidence : {0.0, 1.0, -0.5, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_AS(student_t_quantile(confidence, 3), std::invalid_argument);
  }
  CHECK_THROWS_AS(student_t_quantile(0.95, 0), std::invalid_argument);
}
