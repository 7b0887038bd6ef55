#include "src/core/student_t.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/support/catch2.h"

using namespace settrain;

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
    CHECK(std::abs(student_t_quantile(row.confidence, row.degrees) / row.t - 1) < 1e-9);
    CHECK(std::abs(student_t_probability(row.t, row.degrees) - row.confidence) < 1e-13);
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
