#include "src/formats/torch_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/formats/contents.h"
#include "src/formats/pickle.h"
#include "src/formats/pickled_weights.h"
#include "src/formats/zip.h"

namespace settrain {
namespace {

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
  PickledWeights weights = read_pickled_weights(read_pickle(input), file);
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
  const PickledWeights system = read_pickled_weights(read_pickle(input), file);
  for (const Leaf& leaf : system.leaves) {
    if (joined(leaf.path) == "little_endian" && leaf.value != decltype(leaf.value)(true)) {
      file.fail("its byte order is big, and only little is read");
    }
  }
  PickledWeights weights = read_pickled_weights(read_pickle(input), file);
  const Pickle keys = read_pickle(input);
  const Storages storages = legacy_storages(file, weights, keys, input.position());
  return place(file, "torch.save before PyTorch 1.6", std::move(weights), storages);
}

}  // namespace settrain
