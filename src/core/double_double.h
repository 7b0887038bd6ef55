// Numbers with the digits of two doubles.
#pragma once

#include <cmath>
#include <compare>

namespace settrain {

/// The sum of two numbers: `high`, which is the sum rounded, and `low`, which is what rounding took (double-double
/// arithmetic, Dekker 1971). 1 - 1e-30 keeps its digits, as 1e-30 does. Compares as the sum does; no part is NaN.
struct DoubleDouble {
  double high = 0, low = 0;

  DoubleDouble() = default;
  DoubleDouble(double number) : high(number) {}  // NOLINT: every double is one of these

  /// a + b, exactly (Knuth's two-sum); an infinite sum has no low part.
  static DoubleDouble sum(double a, double b) {
    DoubleDouble result(a + b);
    if (!std::isfinite(result.high)) return result;
    const double from_b = result.high - a;
    result.low = (a - (result.high - from_b)) + (b - from_b);
    return result;
  }

  DoubleDouble operator-() const {
    DoubleDouble result(-high);
    result.low = -low;
    return result;
  }

  friend bool operator==(const DoubleDouble&, const DoubleDouble&) = default;
  // Written out, since the default one allows for NaN, and loops over classes spend their time here.
  friend std::weak_ordering operator<=>(const DoubleDouble& a, const DoubleDouble& b) {
    if (a.high != b.high) return a.high < b.high ? std::weak_ordering::less : std::weak_ordering::greater;
    if (a.low != b.low) return a.low < b.low ? std::weak_ordering::less : std::weak_ordering::greater;
    return std::weak_ordering::equivalent;
  }
};

}  // namespace settrain
