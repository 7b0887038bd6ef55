// The types of elements that files of weights and of scores hold, and what each format calls them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace settrain {

enum class Dtype : uint8_t {
  kFloat64,
  kFloat32,
  kFloat16,
  kBfloat16,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUint64,
  kUint32,
  kUint16,
  kUint8,
  kBool
};

struct DtypeNames {
  Dtype dtype;
  uint64_t bytes;                // of an element
  std::string_view name;         // "float32", as Python's packages print it
  std::string_view safetensors;  // "F32"
  std::string_view storage;      // "FloatStorage", PyTorch's class; empty where it has none
};

/// All of them.
std::span<const DtypeNames> dtypes();

const DtypeNames& names_of(Dtype dtype);

inline uint64_t bytes_of(Dtype dtype) {
  return names_of(dtype).bytes;
}

}  // namespace settrain
