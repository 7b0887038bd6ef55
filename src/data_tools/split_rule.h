// How many images of a class are trained on, validated on, and tested on.
#pragma once

#include <cstdint>
#include <string>

namespace settrain {

/// A decimal fraction in (0, 1), exactly: 0.1 is 1/10, which no double is, and ceil(0.1 * 30) is to be 3.
class Fraction {
 public:
  /// "0.1", ".25", up to nine digits. Throws ConfigError, naming `option`, for anything else.
  Fraction(const std::string& text, const std::string& option);

  int64_t rounded_up(int64_t n) const;  // n in [0, 2^32)
  int64_t nearest(int64_t n) const;     // halves up
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int64_t numerator_ = 0, denominator_ = 1;
};

struct SplitSizes {
  int64_t train = 0, val = 0, test = 0;
  bool operator==(const SplitSizes&) const = default;
};

/// plantnet: that of Pl@ntNet-300K (Garcin's thesis, 2023, section 3.2.2): n_val = n_test = ceil(0.1 n), the rest is
/// for training. fractions: the nearest whole numbers to val * n and test * n, at least one. Of both, classes with more
/// than `min_images` images are kept.
struct SplitRule {
  std::string name = "plantnet";
  Fraction val{"0.1", "--val"}, test{"0.1", "--test"};
  int64_t min_images = 4;

  /// Of a class of n images. All zero where the class is left out: it has min_images or fewer, or nothing would be left
  /// to train on. Else all are at least 1.
  SplitSizes sizes(int64_t n) const;
};

}  // namespace settrain
