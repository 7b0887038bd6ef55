#include "src/formats/torch_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/formats/contents.h"
#include "src/formats/pickle.h"
#include "src/formats/zip.h"

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

// Memory that the pickle refers to and the file holds elsewhere.
struct PickledStorage {
  Dtype dtype;
  int64_t num_elements;

  auto operator<=>(const PickledStorage&) const = default;
};

// A tensor in such memory: `offset` and `stride` in elements.
struct PickledTensor {
  KeyPath path;
  std::string storage;  // its key
  PickledStorage part;  // as this tensor refers to it: another type than another tensor's, or a part of it
  int64_t offset;
  std::vector<int64_t> shape, stride;
};

struct PickledWeights {
  std::vector<PickledTensor> tensors;
  std::vector<Leaf> leaves;
  std::map<std::string, PickledStorage> storages;  // whole ones, by key: all that the pickle names
};

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

// Walks the tree of what torch.save pickled: containers of tensors, numbers and texts. Of the calls that a pickle can
// ask for, those that make tensors, ordered dicts, counters (dicts, of learning-rate schedules) and sizes (tuples) are
// understood. Those of PyTorch's other classes, which tensors could be, and of functions that would run something are
// refused by name. All others become opaque values, such as the argparse.Namespace of timm's checkpoints: no class is
// looked for, and what such a value holds is not walked. A value that is shared counts each time that the walk meets
// it, so that a few bytes cannot ask for much memory.
class PickledWeightsReader {
 public:
  PickledWeightsReader(const Pickle& pickle, const InputFile& file) : pickle_(pickle), file_(file) {}

  // Throws RunError that names what it met: a class or function that is refused (also where its value is dropped), a
  // whole module, a state that is set of a tensor, a key that is neither text nor integer, a key twice, an integer
  // beyond 64 bits, containers nested more than 64 deep, more than kMostPickleValues or 64 MiB of names and texts once
  // everything shared is written out.
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

// A state dict of 10,000 tensors takes 2 MB.
constexpr uint64_t kLongestPickle = 32 * 1024 * 1024;

// torch/serialization.py: MAGIC_NUMBER 0x1950a86a20f9469cfc6c, little-endian, and PROTOCOL_VERSION.
constexpr std::string_view kTorchMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr int64_t kVersion = 1001;

using Storages = std::map<std::string, Storage>;

// The tensors, each placed in the bytes of its storage.
Contents place(const InputFile& file, std::string format, PickledWeights weights, const Storages& storages) {
  Contents contents{.format = std::move(format), .leaves = std::move(weights.leaves)};
  for (PickledTensor& tensor : weights.tensors) {
    const Storage& storage = storages.at(tensor.storage);
    TensorEntry entry{std::move(tensor.path),   tensor.part.dtype, std::move(tensor.shape),
                      std::move(tensor.stride), tensor.offset,     storage};
    const std::string name = shown(joined(entry.path));
    const auto declared = static_cast<uint64_t>(tensor.part.num_elements);
    if (declared > storage.size / bytes_of(entry.dtype)) {
      file.fail(fmt::format("tensor {}: its storage should have {} elements, and has {} bytes", name, declared,
                            storage.size));
    }
    entry.storage.size = declared * bytes_of(entry.dtype);
    const std::string problem = misplacement(entry);
    if (!problem.empty()) file.fail(fmt::format("tensor {}: {}", name, problem));
    entry.storage.size = storage.size;
    contents.tensors.push_back(std::move(entry));
  }
  return contents;
}

using Members = std::map<std::string, ZipMember>;

Members by_name(std::vector<ZipMember> members) {
  Members named;
  for (ZipMember& member : members) named.emplace(member.name, std::move(member));
  return named;
}

const ZipMember* find(const Members& members, const std::string& name) {
  const auto found = members.find(name);
  return found == members.end() ? nullptr : &found->second;
}

// The folder that everything lies in: "archive/".
std::string root_of(const InputFile& file, const Members& members) {
  constexpr std::string_view kPickle = "data.pkl";
  std::string root;
  bool is_script = false;
  for (const auto& [name, member] : members) {
    const size_t slash = name.find('/');
    if (slash == std::string::npos) continue;
    const std::string_view rest = std::string_view(name).substr(slash + 1);
    if (rest == kPickle && !root.empty()) file.fail("it is a zip archive with more than one data.pkl");
    if (rest == kPickle) root = name.substr(0, slash + 1);
    if (rest == "constants.pkl") is_script = true;
  }
  if (root.empty()) file.fail("it is a zip archive, but none that torch.save wrote: there is no data.pkl in it");
  if (is_script) file.fail("it is a TorchScript program; save model.state_dict() instead");
  return root;
}

// Every machine with PyTorch writes "little" by now.
void check_byte_order(const InputFile& file, const Members& members, const std::string& root) {
  constexpr std::string_view kLittle = "little";
  const ZipMember* member = find(members, root + "byteorder");
  if (!member) return;
  const Storage at = locate(file, *member);
  std::string order(std::min<uint64_t>(at.size, kLittle.size() + 1), '\0');
  file.read(order.data(), order.size(), at.begin);
  if (order != kLittle) file.fail(fmt::format("its byte order is {}, and only little is read", shown(order)));
}

// The storages in the order of the list of keys behind the pickle, each with its number of elements in front.
Storages legacy_storages(const InputFile& file, const PickledWeights& weights, const Pickle& keys, uint64_t at) {
  const PickleNode& list = keys[keys.root];
  if (list.kind != PickleKind::kList) file.fail("the keys of its storages are no list");
  Storages storages;
  for (const uint32_t item : list.items) {
    const std::string& key = keys[item].text;
    const auto known = weights.storages.find(key);
    if (keys[item].kind != PickleKind::kText || known == weights.storages.end()) {
      file.fail(fmt::format("storage {} belongs to no tensor", shown(key)));
    }
    uint64_t elements = 0;
    file.read(&elements, sizeof elements, at);
    at += sizeof elements;
    if (elements != static_cast<uint64_t>(known->second.num_elements)) {
      file.fail(fmt::format("storage {} should have {} elements, and says {}", shown(key), known->second.num_elements,
                            elements));
    }
    const uint64_t width = bytes_of(known->second.dtype);
    if (elements > (file.size() - at) / width) {
      file.fail(fmt::format("storage {} of {} elements is cut short: get the file again", shown(key), elements));
    }
    if (!storages.emplace(key, Storage{at, elements * width}).second)
      file.fail("storage " + shown(key) + " comes twice");
    at += elements * width;
  }
  for (const auto& [key, storage] : weights.storages) {
    if (!storages.contains(key)) file.fail(fmt::format("storage {} of a tensor is not there", shown(key)));
  }
  return storages;
}

}  // namespace

Contents zip_contents(const InputFile& file) {
  const Members members = by_name(read_zip_directory(file));
  const std::string root = root_of(file, members);
  check_byte_order(file, members, root);
  const Storage pickle = locate(file, *find(members, root + "data.pkl"));
  if (pickle.size > kLongestPickle) file.fail(fmt::format("its data.pkl is longer than {} bytes", kLongestPickle));
  check_crc(file, pickle);
  PickleInput input(file, pickle.begin, pickle.size);
  PickledWeights weights = PickledWeightsReader(read_pickle(input), file).read();
  Storages storages;
  for (const auto& entry : weights.storages) {
    const ZipMember* member = find(members, root + "data/" + entry.first);
    if (!member) file.fail(fmt::format("storage {} of a tensor is not there", shown(entry.first)));
    const Storage storage = locate(file, *member);
    const PickledStorage& expected = entry.second;
    if (storage.size / bytes_of(expected.dtype) != static_cast<uint64_t>(expected.num_elements)) {
      file.fail(fmt::format("storage {} should have {} elements, and has {} bytes", shown(entry.first),
                            expected.num_elements, storage.size));
    }
    storages[entry.first] = storage;
  }
  return place(file, "torch.save", std::move(weights), storages);
}

Contents legacy_contents(const InputFile& file) {
  PickleInput input(file, 0, std::min(file.size(), kLongestPickle));
  const Pickle magic = read_pickle(input);
  if (magic[magic.root].kind != PickleKind::kBigInteger || magic[magic.root].text != kTorchMagic) {
    file.fail("it is a pickle, but none that torch.save wrote");
  }
  const Pickle version = read_pickle(input);
  if (version[version.root].kind != PickleKind::kInteger || version[version.root].integer != kVersion) {
    file.fail(fmt::format("its format is not version {} of torch.save", kVersion));
  }
  const PickledWeights system = PickledWeightsReader(read_pickle(input), file).read();
  for (const Leaf& leaf : system.leaves) {
    if (joined(leaf.path) == "little_endian" && leaf.value != decltype(leaf.value)(true)) {
      file.fail("its byte order is big, and only little is read");
    }
  }
  PickledWeights weights = PickledWeightsReader(read_pickle(input), file).read();
  const Pickle keys = read_pickle(input);
  const Storages storages = legacy_storages(file, weights, keys, input.position());
  return place(file, "torch.save before PyTorch 1.6", std::move(weights), storages);
}

}  // namespace settrain
