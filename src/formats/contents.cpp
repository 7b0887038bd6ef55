#include "src/formats/contents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "src/core/text.h"

namespace settrain {
namespace {

constexpr std::array<DtypeNames, 13> kDtypes{{
    {Dtype::kFloat64, 8, "float64", "F64", "DoubleStorage", "<f8"},
    {Dtype::kFloat32, 4, "float32", "F32", "FloatStorage", "<f4"},
    {Dtype::kFloat16, 2, "float16", "F16", "HalfStorage", "<f2"},
    {Dtype::kBfloat16, 2, "bfloat16", "BF16", "BFloat16Storage", ""},
    {Dtype::kInt64, 8, "int64", "I64", "LongStorage", "<i8"},
    {Dtype::kInt32, 4, "int32", "I32", "IntStorage", "<i4"},
    {Dtype::kInt16, 2, "int16", "I16", "ShortStorage", "<i2"},
    {Dtype::kInt8, 1, "int8", "I8", "CharStorage", "|i1"},
    {Dtype::kUint64, 8, "uint64", "U64", "", "<u8"},
    {Dtype::kUint32, 4, "uint32", "U32", "", "<u4"},
    {Dtype::kUint16, 2, "uint16", "U16", "", "<u2"},
    {Dtype::kUint8, 1, "uint8", "U8", "ByteStorage", "|u1"},
    {Dtype::kBool, 1, "bool", "BOOL", "BoolStorage", "|b1"},
}};

static_assert(kDtypes.back().dtype == Dtype::kBool && kDtypes.size() == static_cast<size_t>(Dtype::kBool) + 1 &&
                  std::ranges::adjacent_find(kDtypes, std::greater_equal(), &DtypeNames::dtype) == kDtypes.end(),
              "the types are in the order of the enumeration");

std::string name_of(const KeyPath& path) {
  return displayed(joined(path));
}

}  // namespace

std::span<const DtypeNames> dtypes() {
  return kDtypes;
}

const DtypeNames& names_of(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)];
}

std::string joined(const KeyPath& path) {
  std::string text;
  for (const auto& key : path) {
    const auto* name = std::get_if<std::string>(&key);
    text += (text.empty() ? "" : ".") + (name ? *name : std::to_string(std::get<int64_t>(key)));
  }
  return text;
}

int64_t TensorEntry::num_elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
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
  if (const auto* opaque = std::get_if<Opaque>(&leaf.value)) return "<" + displayed(opaque->name) + ">, not read";
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
  // JSON escapes all control characters but this one.
  const std::string text =
      replace_characters(Json(name).dump(-1, ' ', true, Json::error_handler_t::replace), {{'\x7F', "\\u007f"}});
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...\"";
}

std::string displayed(const std::string& name) {
  const std::string quoted = shown(name);
  return quoted == '"' + name + '"' ? name : quoted;
}

std::string describe_contents(const Contents& contents) {
  size_t name_width = 0, shape_width = 0;
  for (const TensorEntry& entry : contents.tensors) {
    name_width = std::max(name_width, name_of(entry.path).size());
    shape_width = std::max(shape_width, fmt::format("{}", entry.shape).size());
  }
  std::string text;
  std::map<Storage, std::string> owners;
  uint64_t bytes = 0;
  for (const TensorEntry& entry : contents.tensors) {
    const auto [owner, is_first] = owners.emplace(entry.storage, name_of(entry.path));
    text +=
        fmt::format("  {:<{}}  {:<8}  {:<{}}  {:>10}{}\n", name_of(entry.path), name_width, names_of(entry.dtype).name,
                    fmt::format("{}", entry.shape), shape_width, format_bytes(entry.num_bytes()),
                    is_first || entry.num_elements() == 0 ? "" : "  shares the memory of " + owner->second);
    bytes += entry.num_bytes();
  }
  text = fmt::format("tensors: {}, {}\n", format_count(static_cast<int64_t>(contents.tensors.size())),
                     format_bytes(bytes)) +
         text;
  if (!contents.leaves.empty()) text += fmt::format("other values: {}\n", contents.leaves.size());
  for (const Leaf& leaf : contents.leaves) text += fmt::format("  {}: {}\n", name_of(leaf.path), describe(leaf));
  if (!contents.metadata.empty()) text += fmt::format("metadata: {}\n", contents.metadata.size());
  for (const auto& [name, value] : contents.metadata) text += fmt::format("  {}: {}\n", displayed(name), shown(value));
  return text;
}

}  // namespace settrain
