#include "src/core/student_t.h"

#include <cmath>
#include <numbers>
#include <stdexcept>

namespace settrain {
namespace {

// P(|T| <= sqrt(degrees) * tan(angle)), angle in [0, pi / 2].
double probability_at(double angle, int64_t degrees) {
  const bool is_odd = degrees % 2 != 0;
  const double cosine = std::cos(angle);
  // Even: 1 + 1/2 cos^2 + (1 * 3)/(2 * 4) cos^4 + ...; odd: cos + 2/3 cos^3 + (2 * 4)/(3 * 5) cos^5 + ...; both up to
  // the power degrees - 2.
  double term = is_odd ? cosine : 1.0, sum = 0;
  for (int64_t power = is_odd ? 1 : 0; power <= degrees - 2; power += 2) {
    sum += term;
    term *= cosine * cosine * static_cast<double>(power + 1) / static_cast<double>(power + 2);
  }
  sum *= std::sin(angle);
  return is_odd ? (angle + sum) * 2 / std::numbers::pi : sum;
}

}  // namespace

double student_t_probability(double t, int64_t degrees) {
  return probability_at(std::atan(t / std::sqrt(static_cast<double>(degrees))), degrees);
}

double student_t_quantile(double confidence, int64_t degrees) {
  if (!(confidence > 0 && confidence < 1)) throw std::invalid_argument("a confidence lies between 0 and 1");
  if (degrees < 1) throw std::invalid_argument("Student's t has at least one degree of freedom");
  double low = 0, high = std::numbers::pi / 2;
  for (;;) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;  // neighbours: no number lies between them
    (probability_at(middle, degrees) < confidence ? low : high) = middle;
  }
  return std::sqrt(static_cast<double>(degrees)) * std::tan(high);
}

}  // namespace settrain
