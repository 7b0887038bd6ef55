#include "src/formats/pickled_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace settrain {
namespace {

constexpr int kDeepest = 64;
constexpr size_t kMostText = 64 * 1024 * 1024;
constexpr size_t kLongestKey = 100;  // of a storage: a counter, or an address

constexpr std::string_view kOrderedDict = "collections.OrderedDict", kCounter = "collections.Counter",
                           kSize = "torch.Size";
constexpr std::string_view kTensor = "torch._utils._rebuild_tensor", kTensor2 = "torch._utils._rebuild_tensor_v2",
                           kParameter = "torch._utils._rebuild_parameter";
constexpr std::array kFunctions{kOrderedDict, kCounter, kSize, kTensor, kTensor2, kParameter};

// Whether Python would run something by calling that, or find what it could run. Files of weights have no use for it.
bool runs_something(std::string_view global) {
  constexpr std::array kHarmless{"bool", "bytearray", "bytes", "complex", "dict",  "float", "frozenset", "int",
                                 "list", "object",    "range", "set",     "slice", "str",   "tuple"};
  constexpr std::array kModules{"code",   "codeop",     "commands", "ctypes", "importlib", "marshal", "nt",
                                "os",     "pickle",     "pkgutil",  "posix",  "pty",       "runpy",   "shutil",
                                "socket", "subprocess", "sys",      "types",  "webbrowser"};
  const std::string_view module = global.substr(0, global.find('.'));
  if (module == "builtins" || module == "__builtin__") {
    return std::ranges::count(kHarmless, global.substr(module.size() + 1)) == 0;
  }
  return std::ranges::count(kModules, module) > 0;
}

// torch.float32, torch.device: how tensors were computed, which leaves them as they are.
bool is_setting_of_torch(std::string_view global) {
  constexpr std::string_view kModule = "torch.";
  if (!global.starts_with(kModule)) return false;
  const std::string_view name = global.substr(kModule.size());
  return name == "device" || std::ranges::count(dtypes(), name, &DtypeNames::name) > 0;
}

// The type of torch.FloatStorage and, saved from a GPU, torch.cuda.FloatStorage.
std::optional<Dtype> storage_type(std::string_view global) {
  for (const std::string_view module : {"torch.cuda.", "torch."}) {
    if (!global.starts_with(module)) continue;
    for (const DtypeNames& names : dtypes()) {
      if (!names.storage.empty() && global.substr(module.size()) == names.storage) return names.dtype;
    }
  }
  return std::nullopt;
}

class PickledWeightsReader {
 public:
  PickledWeightsReader(const Pickle& pickle, const InputFile& file) : pickle_(pickle), file_(file) {}

  PickledWeights read() {
    for (const PickleNode& node : pickle_.nodes) {
      if (node.kind == PickleKind::kGlobal) check_global(node.text);
      if (node.kind == PickleKind::kCall && !makes_opaque(node)) {
        if (node.has_state && !calls(node, kOrderedDict)) {
          fail("it sets the state of something that is no ordered dict");
        }
        if (node.is_list) fail("something that is no list is appended to");
      }
      if (node.kind == PickleKind::kPersistent) add_storage(node);
    }
    walk(pickle_.root, 0);
    return std::move(found_);
  }

 private:
  using Keys = std::set<KeyPath::value_type>;  // that a dict has had so far

  // A reference to a storage.
  struct Reference {
    std::string key;
    PickledStorage whole;
    int64_t first = 0, num_elements = 0;  // the part that is meant
  };

  [[noreturn]] void fail(const std::string& what) const { file_.fail(what); }

  // Checks globals whose value the pickle drops, too: they would have been called for what they do.
  void check_global(const std::string& name) const {
    if (is_understood(name) || is_opaque(name)) return;
    fail(fmt::format(
        "it asks for {}, which is not read, and nothing of it was run. A file of weights holds tensors, dicts, "
        "lists, numbers and texts; if you trust this one, save model.state_dict() alone with Python",
        shown(name)));
  }

  static bool is_understood(const std::string& global) {
    return storage_type(global) || std::ranges::count(kFunctions, global) > 0;
  }

  static bool is_opaque(const std::string& global) {
    if (is_understood(global) || runs_something(global)) return false;
    return !global.starts_with("torch.") || is_setting_of_torch(global);
  }

  const PickleNode& node(uint32_t index) const { return pickle_[index]; }

  bool makes_opaque(const PickleNode& call) const {
    const PickleNode& callee = node(call.operands[0]);
    return callee.kind == PickleKind::kGlobal && is_opaque(callee.text);
  }

  bool calls(const PickleNode& call, std::string_view function) const {
    const PickleNode& callee = node(call.operands[0]);
    return callee.kind == PickleKind::kGlobal && callee.text == function;
  }

  // The arguments of a call.
  const std::vector<uint32_t>& arguments(const PickleNode& call) const {
    const PickleNode& tuple = node(call.operands[1]);
    if (tuple.kind != PickleKind::kTuple) fail("a call's arguments are no tuple");
    return tuple.items;
  }

  int64_t integer(uint32_t index, const char* what) const {
    if (node(index).kind != PickleKind::kInteger || node(index).integer < 0) {
      fail(fmt::format("{} is no whole number from 0", what));
    }
    return node(index).integer;
  }

  std::vector<int64_t> integers(uint32_t index, const char* what) const {
    const PickleNode& tuple = node(index);
    if (tuple.kind != PickleKind::kTuple && tuple.kind != PickleKind::kList)
      fail(fmt::format("{} lies in no tuple", what));
    if (tuple.items.size() > kMostSizes) fail(fmt::format("{} is one of more than {}", what, kMostSizes));
    std::vector<int64_t> values;
    for (const uint32_t item : tuple.items) values.push_back(integer(item, what));
    return values;
  }

  const std::string& text(uint32_t index, const char* what) const {
    if (node(index).kind != PickleKind::kText) fail(fmt::format("{} is no text", what));
    return node(index).text;
  }

  // ("storage", torch.FloatStorage, key, device, elements[, view]); view: None, or (key of its own, first, elements).
  Reference reference(const PickleNode& persistent) const {
    if (persistent.kind != PickleKind::kPersistent) fail("a tensor's storage is none");
    const PickleNode& identifier = node(persistent.operands[0]);
    const auto& parts = identifier.items;
    if (identifier.kind != PickleKind::kTuple || parts.empty()) fail("a storage's identifier is no tuple");
    const std::string& kind = text(parts[0], "the kind of a stored object");
    if (kind == "module") fail("it holds a whole module and its source; save model.state_dict() instead");
    if (kind != "storage" || parts.size() < 5 || parts.size() > 6) fail("a storage's identifier is not as PyTorch's");
    const PickleNode& type = node(parts[1]);
    const auto dtype = type.kind == PickleKind::kGlobal ? storage_type(type.text) : std::nullopt;
    if (!dtype) fail("a storage's type is none");
    const std::string& key = text(parts[2], "a storage's key");
    if (key.size() > kLongestKey) fail(fmt::format("a storage's key is longer than {} bytes", kLongestKey));
    Reference found{key, {*dtype, integer(parts[4], "a storage's size")}};
    found.num_elements = found.whole.num_elements;
    if (parts.size() == 6 && node(parts[5]).kind != PickleKind::kNone) {
      const PickleNode& view = node(parts[5]);
      if (view.kind != PickleKind::kTuple || view.items.size() != 3) fail("a view of a storage is no triple");
      found.first = integer(view.items[1], "the first element of a view of a storage");
      found.num_elements = integer(view.items[2], "the size of a view of a storage");
      if (found.first > found.whole.num_elements || found.num_elements > found.whole.num_elements - found.first) {
        fail(fmt::format("a view of storage {} does not lie within it", shown(found.key)));
      }
    }
    return found;
  }

  void add_storage(const PickleNode& persistent) {
    const Reference found = reference(persistent);
    auto [known, is_new] = found_.storages.emplace(found.key, found.whole);
    // The same bytes as another type: the file holds as many as the largest needs.
    if (!is_new && known->second != found.whole) known->second = std::max(known->second, found.whole, fewer_bytes);
  }

  static bool fewer_bytes(const PickledStorage& a, const PickledStorage& b) {
    return static_cast<double>(a.num_elements) * static_cast<double>(bytes_of(a.dtype)) <
           static_cast<double>(b.num_elements) * static_cast<double>(bytes_of(b.dtype));
  }

  void walk(uint32_t index, int depth) {
    if (depth > kDeepest) fail(fmt::format("it is nested more than {} deep", kDeepest));
    if (++visited_ > kMostPickleValues) fail(fmt::format("it holds more than {} values", kMostPickleValues));
    const PickleNode& value = node(index);
    switch (value.kind) {
      case PickleKind::kNone:
        return add_leaf(std::monostate());
      case PickleKind::kBool:
        return add_leaf(value.integer != 0);
      case PickleKind::kInteger:
        return add_leaf(value.integer);
      case PickleKind::kReal:
        return add_leaf(value.real);
      case PickleKind::kText:
        count_text(value.text.size());
        return add_leaf(value.text);
      case PickleKind::kList:
      case PickleKind::kTuple:
        for (size_t i = 0; i < value.items.size(); ++i) {
          path_.emplace_back(static_cast<int64_t>(i));
          walk_last(value.items[i], depth);
        }
        return;
      case PickleKind::kDict: {
        Keys keys;
        return walk_pairs(value.items, keys, depth);
      }
      case PickleKind::kCall:
        return makes_opaque(value) ? add_opaque(node(value.operands[0]).text) : walk_call(value, depth);
      case PickleKind::kBigInteger:
        fail(fmt::format("{} is an integer beyond 64 bits", shown(joined(path_))));
      case PickleKind::kGlobal:
        if (is_opaque(value.text)) return add_opaque(value.text);
        fail(fmt::format("{} is the class or function {}", shown(joined(path_)), shown(value.text)));
      case PickleKind::kPersistent:
        fail(fmt::format("{} is a storage without a tensor", shown(joined(path_))));
    }
  }

  // Walks the value at path_, and goes back to the container around it.
  void walk_last(uint32_t index, int depth) {
    walk(index, depth + 1);
    path_.pop_back();
  }

  void walk_entry(uint32_t key_index, uint32_t value, Keys& keys, int depth) {
    const PickleNode& key = node(key_index);
    const bool is_text = key.kind == PickleKind::kText;
    if (!is_text && key.kind != PickleKind::kInteger) {
      fail(fmt::format("a key of {} is neither a text nor an integer", shown(joined(path_))));
    }
    if (is_text) count_text(key.text.size());
    path_.push_back(is_text ? KeyPath::value_type(key.text) : key.integer);
    if (!keys.insert(path_.back()).second) {
      fail(fmt::format("key {} comes twice", is_text ? shown(key.text) : std::to_string(key.integer)));
    }
    walk_last(value, depth);
  }

  // Key, value, key, value, ...
  void walk_pairs(const std::vector<uint32_t>& items, Keys& keys, int depth) {
    for (size_t i = 0; i < items.size(); i += 2) walk_entry(items[i], items[i + 1], keys, depth);
  }

  void walk_call(const PickleNode& call, int depth) {
    const bool is_dict = calls(call, kOrderedDict) || calls(call, kCounter);
    if (!is_dict && !calls(call, kSize)) return add_tensor(call);
    const auto& given = arguments(call);
    if (given.size() > 1) fail("a container is made of more than one argument");
    Keys keys;
    if (given.size() == 1 && is_dict && node(given[0]).kind == PickleKind::kList) {
      walk_list_of_pairs(node(given[0]), keys, depth);
    } else if (given.size() == 1 && is_dict && node(given[0]).kind == PickleKind::kDict) {
      walk_pairs(node(given[0]).items, keys, depth);
    } else if (given.size() == 1 && !is_dict && node(given[0]).kind == PickleKind::kTuple) {
      walk(given[0], depth + 1);
    } else if (given.size() == 1) {
      fail("a container is made of something that is none");
    }
    walk_pairs(call.items, keys, depth);
  }

  // As Python 2 wrote an ordered dict.
  void walk_list_of_pairs(const PickleNode& list, Keys& keys, int depth) {
    for (const uint32_t index : list.items) {
      const PickleNode& pair = node(index);
      if ((pair.kind != PickleKind::kList && pair.kind != PickleKind::kTuple) || pair.items.size() != 2) {
        fail("an ordered dict is made of something that is no pair");
      }
      walk_entry(pair.items[0], pair.items[1], keys, depth);
    }
  }

  void add_tensor(const PickleNode& call) {
    const PickleNode* made = &call;
    if (calls(call, kParameter)) {  // of a tensor, whether it needs a gradient, and hooks
      const auto& given = arguments(call);
      if (given.size() != 3 || node(given[0]).kind != PickleKind::kCall) fail("a parameter is made of no tensor");
      made = &node(given[0]);
    }
    if (!calls(*made, kTensor) && !calls(*made, kTensor2)) {
      fail(fmt::format("{} is made by a call that makes no tensor", shown(joined(path_))));
    }
    // Storage, offset, sizes, strides; then whether it needs a gradient, hooks, and what else is known of it.
    const auto& given = arguments(*made);
    const bool is_first_version = calls(*made, kTensor);
    if (is_first_version ? given.size() != 4 : given.size() < 6 || given.size() > 7) {
      fail(fmt::format("tensor {} is made of {} arguments", shown(joined(path_)), given.size()));
    }
    if (given.size() == 7 && (node(given[6]).kind != PickleKind::kDict || !node(given[6]).items.empty())) {
      fail(fmt::format("tensor {} is conjugated or negated, which is not read", shown(joined(path_))));
    }
    if (!call.items.empty() || !made->items.empty()) fail("items are set of a tensor");
    Reference storage = reference(node(given[0]));
    count_path();
    count_text(sizeof(PickledTensor) + storage.key.size() + 2 * sizeof(int64_t) * node(given[2]).items.size());
    found_.tensors.push_back({path_,
                              storage.key,
                              {storage.whole.dtype, storage.first + storage.num_elements},
                              0,
                              integers(given[2], "one of a tensor's sizes"),
                              integers(given[3], "one of a tensor's strides")});
    if (__builtin_add_overflow(storage.first, integer(given[1], "a tensor's offset"), &found_.tensors.back().offset)) {
      fail("a tensor's offset is beyond 2^63");
    }
  }

  void add_opaque(const std::string& name) {
    count_text(name.size());
    add_leaf(Opaque{name});
  }

  void add_leaf(decltype(Leaf::value) value) {
    count_path();
    found_.leaves.push_back({path_, std::move(value)});
  }

  void count_path() {
    for (const auto& key : path_) {
      const auto* name = std::get_if<std::string>(&key);
      count_text(sizeof key + (name ? name->size() : 0));
    }
  }

  // Values that are shared in the pickle are written out here, which must not take more memory than a file can ask for.
  void count_text(size_t size) {
    written_ += size;
    if (written_ > kMostText) fail(fmt::format("its names and texts take more than {} bytes", kMostText));
  }

  const Pickle& pickle_;
  const InputFile& file_;
  PickledWeights found_;
  KeyPath path_;
  size_t visited_ = 0, written_ = 0;
};

}  // namespace

PickledWeights read_pickled_weights(const Pickle& pickle, const InputFile& file) {
  return PickledWeightsReader(pickle, file).read();
}

}  // namespace settrain
