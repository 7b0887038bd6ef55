#include "src/formats/contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace settrain {

std::string joined(const KeyPath& path) {
  std::string text;
  for (const auto& key : path) {
    if (!text.empty()) text += ".";
    if (const auto* name = std::get_if<std::string>(&key)) {
      text += *name;
    } else {
      text += std::to_string(std::get<int64_t>(key));
    }
  }
  return text;
}

int64_t TensorEntry::num_elements() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

bool TensorEntry::is_contiguous() const {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && stride[i] != expected) return num_elements() == 0;
    expected *= shape[i];
  }
  return true;
}

std::string describe(const Leaf& leaf) {
  if (std::holds_alternative<std::monostate>(leaf.value)) return "None";
  if (const auto* truth = std::get_if<bool>(&leaf.value)) return *truth ? "True" : "False";
  if (const auto* integer = std::get_if<int64_t>(&leaf.value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&leaf.value)) {
    const std::string digits = fmt::format("{}", *real);
    return digits.find_first_of(".en") == std::string::npos ? digits + ".0" : digits;  // 1.0, and 1e-05, inf, nan
  }
  return shown(std::get<std::string>(leaf.value));
}

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<int64_t>(shape[i], 1);
  return strides;
}

std::string shape_problem(Dtype dtype, const std::vector<int64_t>& shape) {
  if (shape.size() > kMostSizes) return fmt::format("its shape has more than {} sizes", kMostSizes);
  // Zeros are counted as ones in the check for overflow, since strides are computed from all sizes.
  auto bytes = static_cast<int64_t>(bytes_of(dtype));
  for (const int64_t size : shape) {
    if (size < 0) return "its shape has a size below zero";
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes)) return "its shape has more than 2^63 bytes";
  }
  return "";
}

std::string misplacement(const TensorEntry& entry) {
  const std::string problem = shape_problem(entry.dtype, entry.shape);
  if (!problem.empty()) return problem;
  if (entry.shape.size() != entry.stride.size()) {
    return fmt::format("its shape has {} sizes, and there are {} strides", entry.shape.size(), entry.stride.size());
  }
  if (entry.offset < 0) return "it begins before its storage";
  const bool is_empty = entry.num_elements() == 0;
  int64_t last = entry.offset;
  for (size_t i = 0; i < entry.shape.size(); ++i) {
    int64_t reach = 0;
    if (entry.stride[i] < 0) return "it has a stride below zero";
    if (is_empty || entry.shape[i] == 1) continue;
    if (__builtin_mul_overflow(entry.shape[i] - 1, entry.stride[i], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return "its strides reach further than 2^63 elements";
    }
  }
  const uint64_t available = entry.storage.size / bytes_of(entry.dtype);
  const uint64_t needed = static_cast<uint64_t>(last) + (is_empty ? 0 : 1);
  return needed <= available ? "" : fmt::format("it needs {} elements of a storage that has {}", needed, available);
}

std::string shown(const std::string& name) {
  using Json = nlohmann::json;
  constexpr size_t kLongest = 120;
  const std::string text = Json(name).dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...\"";
}

std::string displayed(const std::string& name) {
  const std::string quoted = shown(name);
  return quoted.size() == name.size() + 2 ? name : quoted;
}

}  // namespace settrain
