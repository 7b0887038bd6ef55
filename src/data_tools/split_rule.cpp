#include "src/data_tools/split_rule.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/core/error.h"

namespace settrain {

Fraction::Fraction(const std::string& text, const std::string& option) : text_(text) {
  const size_t point = text.find('.');
  const std::string whole = text.substr(0, point);
  const std::string digits = point == std::string::npos ? "" : text.substr(point + 1);
  const bool is_number = whole.find_first_not_of('0') == std::string::npos && !digits.empty() && digits.size() <= 9 &&
                         digits.find_first_not_of("0123456789") == std::string::npos;
  if (is_number) {
    numerator_ = std::stoll(digits);
    for (size_t i = 0; i < digits.size(); ++i) denominator_ *= 10;
  }
  if (numerator_ == 0) {
    throw ConfigError(
        fmt::format("{}: expected a fraction between 0 and 1 with at most nine digits, such as 0.1, got "
                    "'{}'",
                    option, text));
  }
}

int64_t Fraction::rounded_up(int64_t n) const {
  return (n * numerator_ + denominator_ - 1) / denominator_;
}

int64_t Fraction::nearest(int64_t n) const {
  return (2 * n * numerator_ + denominator_) / (2 * denominator_);
}

SplitSizes SplitRule::sizes(int64_t n) const {
  if (n <= min_images) return {};
  const auto part = [&](const Fraction& fraction) {
    return name == "plantnet" ? fraction.rounded_up(n) : std::max<int64_t>(fraction.nearest(n), 1);
  };
  SplitSizes sizes{0, part(val), part(test)};
  sizes.train = n - sizes.val - sizes.test;
  return sizes.train >= 1 ? sizes : SplitSizes{};
}

}  // namespace settrain
