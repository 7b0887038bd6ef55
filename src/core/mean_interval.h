// Means over seeds, and intervals that say how far they can be trusted.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace settrain {

/// The t with P(|T| <= t) = `confidence` for Student's t with `degrees` of freedom: 4.302652729749 for 0.95 and 2. The
/// probability is the finite sum of positive terms of Abramowitz and Stegun 1964, eq. 26.7.3 and 26.7.4. Right to 1e-9
/// of its value. Time grows with `degrees`. Throws std::invalid_argument unless 0 < confidence < 1 and degrees >= 1.
double student_t_quantile(double confidence, int64_t degrees);

/// The mean of some values and a 95 % interval for the mean of all the values that could have been drawn: mean +/-
/// half_width, by Student's t with count - 1 degrees of freedom. It takes the values for independent and normal.
struct MeanInterval {
  double mean = 0;
  double deviation = 0;   // of a sample: the sum of squares over count - 1; NaN for one value
  double half_width = 0;  // of the interval; NaN for one value, which has none
  int64_t count = 0;

  bool has_interval() const { return count > 1; }
  /// Two values: the interval is 12.7 standard errors to either side, and says little.
  bool deserves_warning() const { return count == 2; }
};

/// Mean and interval of `values`; all NaN where one of them is. Equal values give exactly their value, and widths of
/// exactly 0. Throws std::invalid_argument where there is no value.
MeanInterval mean_interval(std::span<const double> values);

/// Mean and interval of the differences first[i] - second[i], as of two settings run with the same seeds. Throws
/// std::invalid_argument where the lists differ in length or are empty.
MeanInterval paired_difference(std::span<const double> first, std::span<const double> second);

/// How the values of a metric are written.
enum class Unit {
  kFraction,  // accuracies: in percent, with two digits
  kPlain      // set sizes, thresholds, losses: as they are, with four digits
};

/// The unit of a metric by its name, "top5" or "test/top5": sizes, thresholds (_size, _lambda), losses, rates, times
/// and numbers of classes (_nonzeros) are plain.
Unit unit_of(const std::string& metric);

/// A value without an interval: "84.51", "5.0000"; "-" where it is NaN. `signed_value`: "+0.43".
std::string format_value(double value, Unit unit, bool signed_value = false);

/// "84.51 ± 0.32 (3 seeds)"; "84.51 (1 seed)"; "-" where the mean is NaN.
std::string format_interval(const MeanInterval& interval, Unit unit);

/// The same with the sign of the mean: "+0.43 ± 0.20 (3 seeds)".
std::string format_difference(const MeanInterval& interval, Unit unit);

}  // namespace settrain
