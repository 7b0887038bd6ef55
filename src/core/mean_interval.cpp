#include "src/core/mean_interval.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "src/core/metric_name.h"
#include "src/core/student_t.h"

namespace settrain {
namespace {

constexpr double kConfidence = 0.95;

std::string format(const MeanInterval& interval, Unit unit, bool signed_value) {
  std::string text = format_value(interval.mean, unit, signed_value);
  if (std::isnan(interval.mean)) return text;
  if (interval.has_interval()) text += " ± " + format_value(interval.half_width, unit);
  return text + fmt::format(" ({} seed{})", interval.count, interval.count == 1 ? "" : "s");
}

}  // namespace

MeanInterval mean_interval(std::span<const double> values) {
  if (values.empty()) throw std::invalid_argument("a mean of no values");
  const auto count = static_cast<double>(values.size());
  // From the first value on, so that rounding adds no spread to values that are equal.
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
