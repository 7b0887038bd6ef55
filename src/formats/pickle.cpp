#include "src/formats/pickle.h"

#include <fmt/format.h>

#include <bit>
#include <limits>
#include <utility>

#include "src/formats/pickle_opcode.h"

namespace settrain {
namespace {

constexpr uint8_t kNewestProtocol = 5;

class Machine {
 public:
  explicit Machine(PickleInput& input) : input_(input) {}

  Pickle run() {
    while (!step(input_.take<uint8_t>())) {
    }
    pickle_.root = pop();
    return std::move(pickle_);
  }

 private:
  static constexpr uint32_t kUnset = std::numeric_limits<uint32_t>::max();

  // Carries out one opcode; true for the last one.
  bool step(uint8_t code) {
    switch (code) {
      case opcode::kProto:
        if (const auto version = input_.take<uint8_t>(); version > kNewestProtocol) {
          input_.fail(fmt::format("pickle protocol {}, newer than {}", version, kNewestProtocol));
        }
        break;
      case opcode::kFrame:
        input_.take<uint64_t>();
        break;
      case opcode::kStop:
        return true;
      case opcode::kMark:
        if (marks_.size() == kMostPickleValues) input_.fail("more marks than values may be");
        marks_.push_back(stack_.size());
        break;
      case opcode::kPop:
        if (!marks_.empty() && marks_.back() == stack_.size()) {
          marks_.pop_back();
        } else {
          pop();
        }
        break;
      case opcode::kPopMark:
        pop_to_mark();
        break;
      case opcode::kDup:
        push_index(top());
        break;
      default:
        if (!push_value(code) && !use_memo(code) && !combine(code)) {
          input_.fail(
              fmt::format("pickle opcode 0x{:02x} ({}) is not read: a file of weights holds tensors, dicts, lists, "
                          "numbers and texts",
                          code, purpose_of(code)));
        }
    }
    return false;
  }

  // Opcodes that push a value of their own.
  bool push_value(uint8_t code) {
    switch (code) {
      case opcode::kNoneValue:
        push({});
        return true;
      case opcode::kNewTrue:
      case opcode::kNewFalse:
        push({.kind = PickleKind::kBool, .integer = code == opcode::kNewTrue});
        return true;
      case opcode::kBinInt:
        push_integer(input_.take<int32_t>());
        return true;
      case opcode::kBinInt1:
        push_integer(input_.take<uint8_t>());
        return true;
      case opcode::kBinInt2:
        push_integer(input_.take<uint16_t>());
        return true;
      case opcode::kLong1:
        push_long(input_.take_text(input_.take<uint8_t>()));
        return true;
      case opcode::kLong4:
        push_long(input_.take_text(input_.take<uint32_t>()));
        return true;
      case opcode::kBinFloat:
        push({.kind = PickleKind::kReal, .real = std::bit_cast<double>(__builtin_bswap64(input_.take<uint64_t>()))});
        return true;
      case opcode::kShortBinString:
      case opcode::kShortBinUnicode:
        push_text(input_.take<uint8_t>());
        return true;
      case opcode::kBinString:
      case opcode::kBinUnicode:
        push_text(input_.take<uint32_t>());
        return true;
      case opcode::kBinUnicode8:
        push_text(input_.take<uint64_t>());
        return true;
      case opcode::kEmptyList:
        push({.kind = PickleKind::kList});
        return true;
      case opcode::kEmptyTuple:
        push({.kind = PickleKind::kTuple});
        return true;
      case opcode::kEmptyDict:
        push({.kind = PickleKind::kDict});
        return true;
      case opcode::kGlobalName: {
        const std::string module = input_.take_line();
        push_global(module + "." + input_.take_line());
        return true;
      }
      default:
        return false;
    }
  }

  bool use_memo(uint8_t code) {
    switch (code) {
      case opcode::kBinPut:
        memorise(input_.take<uint8_t>());
        return true;
      case opcode::kLongBinPut:
        memorise(input_.take<uint32_t>());
        return true;
      case opcode::kMemoize:
        memorise(memorised_);
        return true;
      case opcode::kBinGet:
        push_index(remembered(input_.take<uint8_t>()));
        return true;
      case opcode::kLongBinGet:
        push_index(remembered(input_.take<uint32_t>()));
        return true;
      default:
        return false;
    }
  }

  // Opcodes that make a value of those on the stack.
  bool combine(uint8_t code) {
    switch (code) {
      case opcode::kTuple:
        push_items(PickleKind::kTuple, pop_to_mark());
        return true;
      case opcode::kTuple1:
      case opcode::kTuple2:
      case opcode::kTuple3:
        push_items(PickleKind::kTuple, pop_some(code - opcode::kTuple1 + 1U));
        return true;
      case opcode::kList:
        push_items(PickleKind::kList, pop_to_mark());
        return true;
      case opcode::kDict:
        push_items(PickleKind::kDict, in_pairs(pop_to_mark()));
        return true;
      case opcode::kAppend:
        add_to(PickleKind::kList, pop_some(1));
        return true;
      case opcode::kAppends:
        add_to(PickleKind::kList, pop_to_mark());
        return true;
      case opcode::kSetItem:
        add_to(PickleKind::kDict, pop_some(2));
        return true;
      case opcode::kSetItems:
        add_to(PickleKind::kDict, in_pairs(pop_to_mark()));
        return true;
      case opcode::kStackGlobal: {
        const std::string name = name_of(pop()), module = name_of(pop());
        push_global(module + "." + name);
        return true;
      }
      case opcode::kReduce:
      case opcode::kNewObj:
        push({.kind = PickleKind::kCall, .operands = pop_some(2)});
        return true;
      case opcode::kNewObjEx:
        pop();  // arguments by name
        push({.kind = PickleKind::kCall, .operands = pop_some(2)});
        return true;
      case opcode::kBinPersId:
        push({.kind = PickleKind::kPersistent, .operands = pop_some(1)});
        return true;
      case opcode::kBuild: {
        pop();
        PickleNode& object = pickle_.nodes[top()];
        if (object.kind != PickleKind::kCall) input_.fail("the state is set of a value that has none");
        object.has_state = true;
        return true;
      }
      default:
        return false;
    }
  }

  void push(PickleNode node) {
    if (pickle_.nodes.size() == kMostPickleValues) input_.fail(fmt::format("more than {} values", kMostPickleValues));
    push_index(static_cast<uint32_t>(pickle_.nodes.size()));
    pickle_.nodes.push_back(std::move(node));
  }

  // Values that are remembered cost two bytes each time that they are used, so these are counted too.
  void push_index(uint32_t value) {
    if (++uses_ > 4 * kMostPickleValues)
      input_.fail(fmt::format("values are used more than {} times", 4 * kMostPickleValues));
    stack_.push_back(value);
  }

  // A text that is remembered can be used for any number of names, which take memory of their own.
  void push_global(std::string name) {
    constexpr size_t kMostBytes = 4 * 1024 * 1024;
    name_bytes_ += name.size();
    if (name_bytes_ > kMostBytes)
      input_.fail(fmt::format("names of classes and functions of more than {} bytes", kMostBytes));
    push({.kind = PickleKind::kGlobal, .text = std::move(name)});
  }

  void push_integer(int64_t value) { push({.kind = PickleKind::kInteger, .integer = value}); }

  // Little-endian two's complement.
  void push_long(std::string bytes) {
    if (bytes.size() > sizeof(int64_t)) {
      push({.kind = PickleKind::kBigInteger, .text = std::move(bytes)});
      return;
    }
    uint64_t value = !bytes.empty() && static_cast<uint8_t>(bytes.back()) >= 0x80 ? ~uint64_t{0} : 0;
    for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
    push_integer(static_cast<int64_t>(value));
  }

  void push_text(uint64_t size) { push({.kind = PickleKind::kText, .text = input_.take_text(size)}); }

  void push_items(PickleKind kind, std::vector<uint32_t> items) { push({.kind = kind, .items = std::move(items)}); }

  // Below the last mark there is nothing to take.
  size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }

  uint32_t top() {
    if (stack_.size() == bottom()) input_.fail("an opcode takes a value from an empty stack");
    return stack_.back();
  }

  uint32_t pop() {
    const uint32_t value = top();
    stack_.pop_back();
    return value;
  }

  // The last `count` values, in the order in which they were pushed.
  std::vector<uint32_t> pop_some(size_t count) {
    if (stack_.size() - bottom() < count) input_.fail("an opcode takes values from an empty stack");
    std::vector<uint32_t> values(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return values;
  }

  std::vector<uint32_t> pop_to_mark() {
    if (marks_.empty()) input_.fail("an opcode looks for a mark that is not there");
    std::vector<uint32_t> values = pop_some(stack_.size() - marks_.back());
    marks_.pop_back();
    return values;
  }

  std::vector<uint32_t> in_pairs(std::vector<uint32_t> values) {
    if (values.size() % 2 != 0) input_.fail("a key of a dict has no value");
    return values;
  }

  // Appends to the list or dict on top; a dict may also be what a call makes.
  void add_to(PickleKind kind, const std::vector<uint32_t>& values) {
    PickleNode& target = pickle_.nodes[top()];
    if (target.kind != kind && !(kind == PickleKind::kDict && target.kind == PickleKind::kCall)) {
      input_.fail(kind == PickleKind::kList ? "something that is no list is appended to"
                                            : "something that is no dict has items set");
    }
    target.items.insert(target.items.end(), values.begin(), values.end());
  }

  const std::string& name_of(uint32_t value) {
    const PickleNode& node = pickle_.nodes[value];
    if (node.kind != PickleKind::kText || node.text.size() > PickleInput::kLongestLine) {
      input_.fail("the name of a class or function is no text, or a long one");
    }
    return node.text;
  }

  void memorise(uint32_t place) {
    if (place >= kMostPickleValues) input_.fail(fmt::format("more than {} remembered values", kMostPickleValues));
    if (place >= memo_.size()) memo_.resize(place + 1, kUnset);
    memorised_ += memo_[place] == kUnset;
    memo_[place] = top();
  }

  uint32_t remembered(uint32_t place) {
    if (place >= memo_.size() || memo_[place] == kUnset) input_.fail("a value is recalled that was never remembered");
    return memo_[place];
  }

  PickleInput& input_;
  Pickle pickle_;
  std::vector<uint32_t> stack_, memo_;
  std::vector<size_t> marks_;
  uint32_t memorised_ = 0;
  size_t uses_ = 0, name_bytes_ = 0;
};

}  // namespace

Pickle read_pickle(PickleInput& input) {
  return Machine(input).run();
}

}  // namespace settrain
