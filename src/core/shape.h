// Shape checks at the entry of public functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace settrain {

/// Stands for "any size" in an expected shape.
inline constexpr int64_t kAnySize = -1;

/// Throws ShapeError, naming the tensor and printing expected and got, unless `got` has the rank and sizes of
/// `expected`. Takes `tensor.sizes()` as it is.
void check_shape(std::string_view name, std::span<const int64_t> got, std::initializer_list<int64_t> expected);

}  // namespace settrain
