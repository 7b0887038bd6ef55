// What a file of weights says it holds, whatever its format. No tensor has been read yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "src/formats/dtype.h"

namespace settrain {

/// The most sizes that a shape may have: ATen's own limit.
inline constexpr size_t kMostSizes = 64;

/// Names and indices from the outermost container inwards: {"optimizer", "state", 0, "momentum_buffer"}.
using KeyPath = std::vector<std::variant<std::string, int64_t>>;

/// "optimizer.state.0.momentum_buffer".
std::string joined(const KeyPath& path);

/// Bytes of the file that tensors lie in, several of them at times.
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

/// What is no tensor: None, a truth value, a number, a text.
struct Leaf {
  KeyPath path;
  std::variant<std::monostate, bool, int64_t, double, std::string> value;
};

/// The value as Python writes it; texts in double quotes, escaped and cut.
std::string describe(const Leaf& leaf);

struct Contents {
  std::string format;  // "safetensors", "torch.save", "torch.save before PyTorch 1.6"
  std::vector<TensorEntry> tensors{};
  std::vector<Leaf> leaves{};
  std::map<std::string, std::string> metadata{};  // of safetensors
};

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
