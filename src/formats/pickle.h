// Python's pickles as data: a stack machine that builds a tree of values and runs nothing. A call that a pickle asks
// for becomes a value that says so; what is made of it, pickled_weights.h decides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/formats/pickle_input.h"

namespace settrain {

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

/// A value. Others are named by their indices in Pickle::nodes.
struct PickleNode {
  PickleKind kind = PickleKind::kNone;
  bool has_state = false;            // kCall: the pickle also sets the state of what the call makes
  int64_t integer = 0;               // kBool, kInteger
  double real = 0;                   // kReal
  std::string text{};                // kText; kGlobal: "module.name"; kBigInteger: little-endian two's complement
  std::vector<uint32_t> items{};     // kList, kTuple; kDict, and a kCall that is filled like one: key, value, key, ...
  std::vector<uint32_t> operands{};  // kCall: function, tuple of arguments; kPersistent: identifier
};

struct Pickle {
  std::vector<PickleNode> nodes;  // all that the pickle ever made, also what it dropped
  uint32_t root = 0;

  const PickleNode& operator[](uint32_t index) const { return nodes[index]; }
};

/// The most values that one pickle may make: a state dict of 10,000 tensors makes 200,000.
inline constexpr size_t kMostPickleValues = 1'000'000;

/// Reads one pickle of protocol 2 to 5 and leaves `input` behind its end. Values may be shared and may contain
/// themselves, so whoever walks the tree counts. Throws RunError naming the byte: cut short, a stack that does not
/// hold what an opcode takes, an opcode of things that no file of weights has (sets, bytes, extensions, protocol 0),
/// more than kMostPickleValues or four times as many uses of them, names of functions of more than 4 MiB.
Pickle read_pickle(PickleInput& input);

}  // namespace settrain
