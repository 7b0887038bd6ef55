// Python's pickles as data: a stack machine that builds a tree of values and runs nothing. A call that a pickle asks
// for becomes a value that says so. torch_file.cpp decides what is made of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "src/formats/input_file.h"

namespace settrain {

/// A part of a file, read from its beginning on.
class PickleInput {
 public:
  /// The `size` bytes of `file` from `begin` on, which are read into memory at once.
  PickleInput(const InputFile& file, uint64_t begin, uint64_t size) : file_(file), begin_(begin), bytes_(size, '\0') {
    file.read(bytes_.data(), size, begin);
  }

  /// The next bytes, as a little-endian integer. Throws RunError where the part ends before them, as the next two do.
  template <class Integer>
  Integer take() {
    Integer value;
    if (sizeof value > bytes_.size() - used_) fail_at_end();
    std::memcpy(&value, bytes_.data() + used_, sizeof value);
    used_ += sizeof value;
    return value;
  }
  std::string take_text(uint64_t size);
  /// Up to the next line feed, which is taken too and left out.
  std::string take_line();

  uint64_t position() const { return begin_ + used_; }  // in the file, of the next byte

  /// Throws RunError "'FILE', byte N: WHAT".
  [[noreturn]] void fail(const std::string& what) const;

 private:
  [[noreturn]] void fail_at_end();

  const InputFile& file_;
  const uint64_t begin_;
  std::string bytes_;
  size_t used_ = 0;
};

enum class PickleKind : uint8_t {
  kNone,
  kBool,
  kInteger,
  kBigInteger,  // beyond int64
  kReal,
  kText,
  kGlobal,  // a class or function by name
  kList,
  kTuple,
  kDict,
  kCall,        // of a global with arguments, or an object that a class makes of them
  kPersistent,  // an object that the pickle's writer stored elsewhere, by its identifier
};

/// A value. It refers to others by their indices in Pickle::nodes.
struct PickleNode {
  PickleKind kind = PickleKind::kNone;
  bool has_state = false;            // kCall: the pickle also sets the state of what the call makes
  bool is_list = false;              // kCall: the pickle also appends to what the call makes; the values are dropped
  int64_t integer = 0;               // kBool, kInteger
  double real = 0;                   // kReal
  std::string text{};                // kText; kGlobal: "module.name"; kBigInteger: little-endian two's complement
  std::vector<uint32_t> items{};     // kList, kTuple; kDict, and a kCall that is filled like one: key, value, key, ...
  std::vector<uint32_t> operands{};  // kCall: function, tuple of arguments; kPersistent: identifier
};

struct Pickle {
  std::vector<PickleNode> nodes;  // all values that the pickle ever made, also those that it dropped
  uint32_t root = 0;

  const PickleNode& operator[](uint32_t index) const { return nodes[index]; }
};

/// The most values that one pickle may make: a state dict of 10,000 tensors makes 200,000.
inline constexpr size_t kMostPickleValues = 1'000'000;

/// Reads one pickle of protocol 2 to 5 and leaves `input` behind its end. Values may be shared and may contain
/// themselves, so a walk of the tree has to count. Throws RunError naming the byte: cut short, a stack that does not
/// hold what an opcode takes, an opcode of things that no file of weights has (sets, bytes, extensions, protocol 0),
/// more than kMostPickleValues or four times as many uses of them, names of functions of more than 4 MiB.
Pickle read_pickle(PickleInput& input);

}  // namespace settrain
