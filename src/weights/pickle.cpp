#include "src/weights/pickle.h"

#include <fmt/format.h>

#include <bit>
#include <limits>
#include <string_view>
#include <utility>

namespace settrain {
namespace {

constexpr uint8_t kNewestProtocol = 5;

// By Python's names (Lib/pickletools.py).
enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNoneValue = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kBuild = 'b',
  kGlobalName = 'c',
  kDict = 'd',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyTuple = ')',
  kEmptyDict = '}',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

// What the opcodes are for that are refused.
std::string_view purpose_of(uint8_t opcode) {
  switch (opcode) {
    case 'I':
    case 'L':
    case 'F':
    case 'S':
    case 'V':
    case 'g':
    case 'p':
      return "a value of protocol 0, which torch.save does not use";
    case 'i':
    case 'o':
    case 0x81:
    case 0x92:
      return "an object of a class";
    case 'B':
    case 'C':
    case 0x8e:
    case 0x96:
    case 0x97:
    case 0x98:
      return "bytes";
    case 0x8f:
    case 0x90:
    case 0x91:
      return "a set";
    case 'P':
      return "a persistent object of protocol 0";
    case 0x82:
    case 0x83:
    case 0x84:
      return "an extension of the pickle format";
    default:
      return "nothing that Python knows";
  }
}

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
  bool step(uint8_t opcode) {
    switch (opcode) {
      case kProto:
        if (const auto version = input_.take<uint8_t>(); version > kNewestProtocol) {
          input_.fail(fmt::format("pickle protocol {}, newer than {}", version, kNewestProtocol));
        }
        break;
      case kFrame:
        input_.take<uint64_t>();
        break;
      case kStop:
        return true;
      case kMark:
        marks_.push_back(stack_.size());
        break;
      case kPop:
        if (!marks_.empty() && marks_.back() == stack_.size()) {
          marks_.pop_back();
        } else {
          pop();
        }
        break;
      case kPopMark:
        pop_to_mark();
        break;
      case kDup:
        stack_.push_back(top());
        break;
      default:
        if (!push_value(opcode) && !use_memo(opcode) && !combine(opcode)) {
          input_.fail(
              fmt::format("pickle opcode 0x{:02x} ({}) is not read: a file of weights holds tensors, dicts, lists, "
                          "numbers and texts",
                          opcode, purpose_of(opcode)));
        }
    }
    return false;
  }

  // Opcodes that push a value of their own.
  bool push_value(uint8_t opcode) {
    switch (opcode) {
      case kNoneValue:
        push({});
        return true;
      case kNewTrue:
      case kNewFalse:
        push({.kind = PickleKind::kBool, .integer = opcode == kNewTrue});
        return true;
      case kBinInt:
        push_integer(input_.take<int32_t>());
        return true;
      case kBinInt1:
        push_integer(input_.take<uint8_t>());
        return true;
      case kBinInt2:
        push_integer(input_.take<uint16_t>());
        return true;
      case kLong1:
        push_long(input_.take_text(input_.take<uint8_t>()));
        return true;
      case kLong4:
        push_long(input_.take_text(input_.take<uint32_t>()));
        return true;
      case kBinFloat:
        push({.kind = PickleKind::kReal, .real = std::bit_cast<double>(__builtin_bswap64(input_.take<uint64_t>()))});
        return true;
      case kShortBinString:
      case kShortBinUnicode:
        push_text(input_.take<uint8_t>());
        return true;
      case kBinString:
      case kBinUnicode:
        push_text(input_.take<uint32_t>());
        return true;
      case kBinUnicode8:
        push_text(input_.take<uint64_t>());
        return true;
      case kEmptyList:
        push({.kind = PickleKind::kList});
        return true;
      case kEmptyTuple:
        push({.kind = PickleKind::kTuple});
        return true;
      case kEmptyDict:
        push({.kind = PickleKind::kDict});
        return true;
      case kGlobalName: {
        const std::string module = input_.take_line();
        push({.kind = PickleKind::kGlobal, .text = module + "." + input_.take_line()});
        return true;
      }
      default:
        return false;
    }
  }

  bool use_memo(uint8_t opcode) {
    switch (opcode) {
      case kBinPut:
        memorise(input_.take<uint8_t>());
        return true;
      case kLongBinPut:
        memorise(input_.take<uint32_t>());
        return true;
      case kMemoize:
        memorise(memorised_);
        return true;
      case kBinGet:
        stack_.push_back(remembered(input_.take<uint8_t>()));
        return true;
      case kLongBinGet:
        stack_.push_back(remembered(input_.take<uint32_t>()));
        return true;
      default:
        return false;
    }
  }

  // Opcodes that make a value of those on the stack.
  bool combine(uint8_t opcode) {
    switch (opcode) {
      case kTuple:
        push_items(PickleKind::kTuple, pop_to_mark());
        return true;
      case kTuple1:
      case kTuple2:
      case kTuple3:
        push_items(PickleKind::kTuple, pop_some(opcode - kTuple1 + 1U));
        return true;
      case kList:
        push_items(PickleKind::kList, pop_to_mark());
        return true;
      case kDict:
        push_items(PickleKind::kDict, in_pairs(pop_to_mark()));
        return true;
      case kAppend:
        add_to(PickleKind::kList, pop_some(1));
        return true;
      case kAppends:
        add_to(PickleKind::kList, pop_to_mark());
        return true;
      case kSetItem:
        add_to(PickleKind::kDict, pop_some(2));
        return true;
      case kSetItems:
        add_to(PickleKind::kDict, in_pairs(pop_to_mark()));
        return true;
      case kStackGlobal: {
        const std::string name = name_of(pop()), module = name_of(pop());
        push({.kind = PickleKind::kGlobal, .text = module + "." + name});
        return true;
      }
      case kReduce:
        push({.kind = PickleKind::kCall, .operands = pop_some(2)});
        return true;
      case kBinPersId:
        push({.kind = PickleKind::kPersistent, .operands = pop_some(1)});
        return true;
      case kBuild: {
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
    stack_.push_back(static_cast<uint32_t>(pickle_.nodes.size()));
    pickle_.nodes.push_back(std::move(node));
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

  // Short, since a text that is remembered can be used any number of times.
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
};

}  // namespace

Pickle read_pickle(PickleInput& input) {
  return Machine(input).run();
}

}  // namespace settrain
