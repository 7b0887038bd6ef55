// Shape checks at the entry of public functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "src/core/error.h"

namespace settrain {

/// Stands for "any size" in an expected shape.
inline constexpr int64_t kAnySize = -1;

/// "[3, *, 5]"
inline std::string shape_text(std::span<const int64_t> shape) {
  std::string text;
  for (const int64_t size : shape) {
    text += (text.empty() ? "" : ", ") + (size == kAnySize ? std::string("*") : std::to_string(size));
  }
  return "[" + text + "]";
}

/// Throws ShapeError, naming the tensor and printing expected and got, unless `got` has the rank and sizes of
/// `expected`. Takes `tensor.sizes()` as it is.
inline void check_shape(std::string_view name, std::span<const int64_t> got, std::initializer_list<int64_t> expected) {
  const bool equal = std::equal(got.begin(), got.end(), expected.begin(), expected.end(),
                                [](int64_t a, int64_t b) { return b == kAnySize || a == b; });
  if (!equal) {
    throw ShapeError(std::string(name) + ": expected shape " + shape_text({expected.begin(), expected.size()}) +
                     ", got " + shape_text(got));
  }
}

}  // namespace settrain
