#include "src/formats/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <string_view>
#include <utility>

#include "src/core/error.h"

namespace settrain {
namespace {

constexpr uint8_t kNewestProtocol = 5, kStop = '.';
constexpr size_t kLongestName = 1000;  // bytes of a class' or a function's name

// The purpose of an opcode that is not read.
std::string_view purpose_of(uint8_t opcode) {
  using namespace std::string_view_literals;
  for (const auto& [opcodes, purpose] :
       {std::pair("ILFSVgp"sv, "a value of protocol 0, which torch.save does not use"sv),
        {"io"sv, "an object of a class"sv},
        {"BC\x8e\x96\x97\x98"sv, "bytes"sv},
        {"\x8f\x90\x91"sv, "a set"sv},
        {"P"sv, "a persistent object of protocol 0"sv},
        {"\x82\x83\x84"sv, "an extension of the pickle format"sv}}) {
    if (opcodes.find(static_cast<char>(opcode)) != std::string_view::npos) return purpose;
  }
  return "nothing that Python knows";
}

class PickleMachine {
 public:
  explicit PickleMachine(PickleInput& input) : input_(input) {}

  Pickle run() {
    for (auto code = input_.take<uint8_t>(); code != kStop; code = input_.take<uint8_t>()) step(code);
    pickle_.root = pop();
    return std::move(pickle_);
  }

 private:
  static constexpr uint32_t kUnset = std::numeric_limits<uint32_t>::max();

  // Carries out one opcode. The comments have Python's names (Lib/pickletools.py).
  void step(uint8_t code) {
    switch (code) {
      case 0x80:  // PROTO
        return check_protocol(input_.take<uint8_t>());
      case 0x95:  // FRAME: its length
        input_.take<uint64_t>();
        return;

      // A mark, and values that go.
      case '(':  // MARK
        return push_mark();
      case '0':  // POP
        return pop_value_or_mark();
      case '1':  // POP_MARK
        pop_to_mark();
        return;

      // Values that are pushed.
      case '2':  // DUP
        return push_index(top());
      case 'N':  // NONE
        return push({});
      case 0x88:  // NEWTRUE
      case 0x89:  // NEWFALSE
        return push_bool(code == 0x88);
      case 'J':  // BININT
        return push_integer(input_.take<int32_t>());
      case 'K':  // BININT1
        return push_integer(input_.take<uint8_t>());
      case 'M':  // BININT2
        return push_integer(input_.take<uint16_t>());
      case 0x8a:  // LONG1
        return push_long(input_.take_text(input_.take<uint8_t>()));
      case 0x8b:  // LONG4
        return push_long(input_.take_text(input_.take<uint32_t>()));
      case 'G':  // BINFLOAT
        return push(
            {.kind = PickleKind::kReal, .real = std::bit_cast<double>(__builtin_bswap64(input_.take<uint64_t>()))});
      case 'U':   // SHORT_BINSTRING
      case 0x8c:  // SHORT_BINUNICODE
        return push_text(input_.take<uint8_t>());
      case 'T':  // BINSTRING
      case 'X':  // BINUNICODE
        return push_text(input_.take<uint32_t>());
      case 0x8d:  // BINUNICODE8
        return push_text(input_.take<uint64_t>());
      case ']':  // EMPTY_LIST
        return push_items(PickleKind::kList, {});
      case ')':  // EMPTY_TUPLE
        return push_items(PickleKind::kTuple, {});
      case '}':  // EMPTY_DICT
        return push_items(PickleKind::kDict, {});
      case 'c': {  // GLOBAL
        const std::string module = input_.take_line();
        return push_global(module + "." + input_.take_line());
      }

      // Values that are remembered by number, and recalled.
      case 'q':  // BINPUT
        return memorise(input_.take<uint8_t>());
      case 'r':  // LONG_BINPUT
        return memorise(input_.take<uint32_t>());
      case 0x94:  // MEMOIZE
        return memorise(memorised_);
      case 'h':  // BINGET
        return push_index(remembered(input_.take<uint8_t>()));
      case 'j':  // LONG_BINGET
        return push_index(remembered(input_.take<uint32_t>()));

      // Values that are made of those on the stack, or added to them.
      case 't':  // TUPLE
        return push_items(PickleKind::kTuple, pop_to_mark());
      case 0x85:  // TUPLE1
      case 0x86:  // TUPLE2
      case 0x87:  // TUPLE3
        return push_items(PickleKind::kTuple, pop_some(code - 0x84U));
      case 'l':  // LIST
        return push_items(PickleKind::kList, pop_to_mark());
      case 'd':  // DICT
        return push_items(PickleKind::kDict, in_pairs(pop_to_mark()));
      case 'a':  // APPEND
        return add_to(PickleKind::kList, pop_some(1));
      case 'e':  // APPENDS
        return add_to(PickleKind::kList, pop_to_mark());
      case 's':  // SETITEM
        return add_to(PickleKind::kDict, pop_some(2));
      case 'u':  // SETITEMS
        return add_to(PickleKind::kDict, in_pairs(pop_to_mark()));
      case 0x93: {  // STACK_GLOBAL
        const std::string name = name_of(pop()), module = name_of(pop());
        return push_global(module + "." + name);
      }
      case 'R':   // REDUCE
      case 0x81:  // NEWOBJ
        return push_call(pop_some(2));
      case 0x92:  // NEWOBJ_EX
        pop();    // arguments by name
        return push_call(pop_some(2));
      case 'Q':  // BINPERSID
        return push({.kind = PickleKind::kPersistent, .operands = pop_some(1)});
      case 'b':  // BUILD
        pop();
        return set_state();
      default:
        input_.fail(
            fmt::format("pickle opcode 0x{:02x} ({}) is not read: a file of weights holds tensors, dicts, lists, "
                        "numbers and texts",
                        code, purpose_of(code)));
    }
  }

  void check_protocol(uint8_t version) const {
    if (version > kNewestProtocol)
      input_.fail(fmt::format("pickle protocol {}, newer than {}", version, kNewestProtocol));
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

  void push_call(std::vector<uint32_t> operands) { push({.kind = PickleKind::kCall, .operands = std::move(operands)}); }

  // A text that is remembered can be used for any number of names, which take memory of their own.
  void push_global(std::string name) {
    constexpr size_t kMostBytes = 4 * 1024 * 1024;
    name_bytes_ += name.size();
    if (name_bytes_ > kMostBytes)
      input_.fail(fmt::format("names of classes and functions of more than {} bytes", kMostBytes));
    push({.kind = PickleKind::kGlobal, .text = std::move(name)});
  }

  void push_mark() {
    if (marks_.size() == kMostPickleValues) input_.fail("more marks than values may be");
    marks_.push_back(stack_.size());
  }

  void push_bool(bool value) { push({.kind = PickleKind::kBool, .integer = value}); }

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

  void pop_value_or_mark() {
    if (!marks_.empty() && marks_.back() == stack_.size()) {
      marks_.pop_back();
    } else {
      pop();
    }
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

  // Appends to the list or dict on top, which may also be what a call makes.
  void add_to(PickleKind kind, const std::vector<uint32_t>& values) {
    PickleNode& target = pickle_.nodes[top()];
    if (kind == PickleKind::kList && target.kind == PickleKind::kCall) {
      target.is_list = true;
      return;
    }
    if (target.kind != kind && !(kind == PickleKind::kDict && target.kind == PickleKind::kCall)) {
      input_.fail(kind == PickleKind::kList ? "something that is no list is appended to"
                                            : "something that is no dict has items set");
    }
    target.items.insert(target.items.end(), values.begin(), values.end());
  }

  void set_state() {
    PickleNode& object = pickle_.nodes[top()];
    if (object.kind != PickleKind::kCall) input_.fail("the state is set of a value that has none");
    object.has_state = true;
  }

  const std::string& name_of(uint32_t value) {
    const PickleNode& node = pickle_.nodes[value];
    if (node.kind != PickleKind::kText || node.text.size() > kLongestName) {
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

std::string PickleInput::take_text(uint64_t size) {
  if (size > bytes_.size() - used_) fail("it ends within a text");
  used_ += size;
  return bytes_.substr(used_ - size, size);
}

std::string PickleInput::take_line() {
  const size_t rest = bytes_.size() - used_, length = std::min(bytes_.find('\n', used_) - used_, rest);
  if (length > kLongestName) {
    used_ += kLongestName + 1;
    fail(fmt::format("a line is longer than {} bytes", kLongestName));
  }
  if (length == rest) fail_at_end();
  used_ += length + 1;
  return bytes_.substr(used_ - length - 1, length);
}

void PickleInput::fail(const std::string& what) const {
  throw RunError(fmt::format("{}, byte {}: {}", file_.place(), position(), what));
}

void PickleInput::fail_at_end() {
  used_ = bytes_.size();
  fail("it ends within a value; it may have been cut short: get it again");
}

Pickle read_pickle(PickleInput& input) {
  return PickleMachine(input).run();
}

}  // namespace settrain
