#include "src/core/shape.h"

#include <algorithm>
#include <string>

#include "src/core/error.h"

namespace settrain {
namespace {

std::string to_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += shape[i] == kAnySize ? "*" : std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace

void check_shape(std::string_view name, std::span<const int64_t> got, std::initializer_list<int64_t> expected) {
  const bool equal = std::equal(got.begin(), got.end(), expected.begin(), expected.end(),
                                [](int64_t a, int64_t b) { return b == kAnySize || a == b; });
  if (!equal) {
    throw ShapeError(std::string(name) + ": expected shape " + to_text({expected.begin(), expected.size()}) + ", got " +
                     to_text(got));
  }
}

}  // namespace settrain
