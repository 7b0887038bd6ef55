// The contents of a file of weights, whatever its format: names, types and places of its tensors, and its other values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace settrain {

/// The types of elements that files of weights and of scores hold.
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
  std::string_view numpy;        // "<f4", as .npy files name it; empty where NumPy has none
};

/// All types, in the order of the enumeration.
std::span<const DtypeNames> dtypes();

const DtypeNames& names_of(Dtype dtype);

inline uint64_t bytes_of(Dtype dtype) {
  return names_of(dtype).bytes;
}

/// The most sizes that a shape may have: ATen's own limit.
inline constexpr size_t kMostSizes = 64;

/// Names and indices from the outermost container inwards: {"optimizer", "state", 0, "momentum_buffer"}.
using KeyPath = std::vector<std::variant<std::string, int64_t>>;

/// "optimizer.state.0.momentum_buffer".
std::string joined(const KeyPath& path);

/// Bytes of the file that tensors lie in. Several tensors may share them.
struct Storage {
  uint64_t begin = 0, size = 0;  // bytes
  uint32_t crc = 0;              // CRC-32 of the bytes, as zip archives have it; 0: not known

  auto operator<=>(const Storage&) const = default;
};

/// A tensor: a view of a storage, which lies within it.
struct TensorEntry {
  KeyPath path;
  Dtype dtype = Dtype::kFloat32;
  std::vector<int64_t> shape, stride;  // stride in elements
  int64_t offset = 0;                  // in elements, from the storage's begin
  Storage storage;

  int64_t num_elements() const;
  uint64_t num_bytes() const { return static_cast<uint64_t>(num_elements()) * bytes_of(dtype); }  // without gaps
  bool is_contiguous() const;  // row-major without gaps
};

/// A value of a class or function that is not read. Nothing of it was run.
struct Opaque {
  std::string name;  // "argparse.Namespace"

  bool operator==(const Opaque&) const = default;
};

/// A value that is no tensor: None, a truth value, a number, a text, or an opaque one.
struct Leaf {
  KeyPath path;
  std::variant<std::monostate, bool, int64_t, double, std::string, Opaque> value;
};

/// The value as Python writes it; texts in double quotes, escaped and cut. Opaque ones by name: `<argparse.Namespace>,
/// not read`.
std::string describe(const Leaf& leaf);

/// The contents as the file states them. No tensor has been read yet.
struct Contents {
  std::string format;  // "safetensors", "torch.save", "torch.save before PyTorch 1.6"
  std::vector<TensorEntry> tensors{};
  std::vector<Leaf> leaves{};
  std::map<std::string, std::string> metadata{};  // of safetensors
};

/// A table for people: a line for each tensor (name, type, shape, bytes, and with which one before it shares memory),
/// then a line for each other value and text of the metadata, cut where it is long.
std::string describe_contents(const Contents& contents);

/// The strides of a row-major tensor without gaps.
std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape);

/// Empty, or why there can be no such tensor: a size below zero, more than 64 sizes, more than 2^63 bytes.
std::string shape_problem(Dtype dtype, const std::vector<int64_t>& shape);

/// Empty, or why `entry` does not lie within its storage: shape_problem(), strides below zero or not as many as sizes,
/// elements beyond the end.
std::string misplacement(const TensorEntry& entry);

/// A name from a file that may be hostile: in quotes, escaped, and cut after 120 characters.
std::string shown(const std::string& name);

/// The same without the quotes where the name is plain.
std::string displayed(const std::string& name);

}  // namespace settrain
