#include "src/core/mean_interval.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "src/core/metric_name.h"

namespace settrain {
namespace {

constexpr double kConfidence = 0.95;

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

std::string format(const MeanInterval& interval, Unit unit, bool signed_value) {
  std::string text = format_value(interval.mean, unit, signed_value);
  if (std::isnan(interval.mean)) return text;
  if (interval.has_interval()) text += " ± " + format_value(interval.half_width, unit);
  return text + fmt::format(" ({} seed{})", interval.count, interval.count == 1 ? "" : "s");
}

}  // namespace

double student_t_quantile(double confidence, int64_t degrees) {
  if (!(confidence > 0 && confidence < 1)) throw std::invalid_argument("a confidence lies between 0 and 1");
  if (degrees < 1) throw std::invalid_argument("Student's t has at least one degree of freedom");
  double low = 0, high = std::numbers::pi / 2;
  // Bisection, until no number lies between the two.
  for (double middle; (middle = low + (high - low) / 2) > low && middle < high;) {
    (probability_at(middle, degrees) < confidence ? low : high) = middle;
  }
  return std::sqrt(static_cast<double>(degrees)) * std::tan(high);
}

MeanInterval mean_interval(std::span<const double> values) {
  if (values.empty()) throw std::invalid_argument("a mean of no values");
  const auto count = static_cast<double>(values.size());
  // Sums differences to the first value, so that rounding adds no spread to values that are equal.
  double sum = 0;
  for (const double value : values) sum += value - values[0];
  MeanInterval interval;
  interval.mean = values[0] + sum / count;
  interval.count = std::ssize(values);
  if (values.size() == 1) {
    interval.deviation = interval.half_width = std::numeric_limits<double>::quiet_NaN();
    return interval;
  }
  double squares = 0;
  for (const double value : values) squares += (value - interval.mean) * (value - interval.mean);
  interval.deviation = std::sqrt(squares / (count - 1));
  interval.half_width = student_t_quantile(kConfidence, interval.count - 1) * interval.deviation / std::sqrt(count);
  return interval;
}

MeanInterval paired_difference(std::span<const double> first, std::span<const double> second) {
  if (first.size() != second.size()) throw std::invalid_argument("pairs of lists of different lengths");
  std::vector<double> differences;
  for (size_t i = 0; i < first.size(); ++i) differences.push_back(first[i] - second[i]);
  return mean_interval(differences);
}

Unit unit_of(const std::string& metric) {
  if (metric.starts_with("time/") || is_size(metric)) return Unit::kPlain;
  for (const char* end : {"_lambda", "_nonzeros", "loss", "/lr"}) {
    if (metric.ends_with(end)) return Unit::kPlain;
  }
  return Unit::kFraction;
}

std::string format_value(double value, Unit unit, bool signed_value) {
  if (std::isnan(value)) return "-";
  const double shown = unit == Unit::kFraction ? 100 * value : value;
  const int digits = unit == Unit::kFraction ? 2 : 4;
  return signed_value ? fmt::format("{:+.{}f}", shown, digits) : fmt::format("{:.{}f}", shown, digits);
}

std::string format_interval(const MeanInterval& interval, Unit unit) {
  return format(interval, unit, false);
}

std::string format_difference(const MeanInterval& interval, Unit unit) {
  return format(interval, unit, true);
}

}  // namespace settrain
