#include "src/formats/weight_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "src/core/error.h"
#include "src/formats/safetensors.h"
#include "src/formats/torch_file.h"
#include "src/formats/zip.h"

namespace settrain {
namespace {

constexpr uint64_t kMostRepetition = 8;

Contents contents_of(const InputFile& file) {
  std::string start(std::min<uint64_t>(file.size(), 9), '\0');
  file.read(start.data(), start.size(), 0);
  if (start.empty()) file.fail("it is empty");
  // First, since the length before it may be any bytes; the others never have this one there (in a zip archive it is
  // the method of compression, in a pickle a part of the magic number or of a frame's length).
  if (start.size() == 9 && start[8] == '{') return safetensors_contents(file);
  if (start.starts_with("PK")) return zip_contents(file);
  if (start[0] == '\x80') return legacy_contents(file);
  if (start.starts_with("<")) file.fail("it is no file of weights but a web page: the download went wrong");
  if (start == "version h")
    file.fail("it is no file of weights but a pointer of Git LFS: `git lfs pull` gets the file");
  file.fail("it is no file of weights: neither safetensors nor what torch.save writes");
}

void check_total(const InputFile& file, const Contents& contents) {
  const uint64_t limit = kMostRepetition * file.size();
  uint64_t total = 0;
  for (const TensorEntry& entry : contents.tensors) {
    total += std::min(entry.num_bytes(), limit + 1);
    if (total <= limit) continue;
    file.fail(
        fmt::format("its tensors, up to {}, would take more than {} times its {} bytes; store no views that repeat",
                    shown(joined(entry.path)), kMostRepetition, file.size()));
  }
}

// Copies the elements of `entry` from `memory`, where its first one is at the beginning.
void gather(const TensorEntry& entry, const uint8_t* memory, uint8_t* target) {
  const size_t rank = entry.shape.size();
  const uint64_t width = bytes_of(entry.dtype);
  std::vector<int64_t> index(rank, 0);
  int64_t place = 0;
  for (int64_t left = entry.num_elements(); left > 0; --left, target += width) {
    std::memcpy(target, memory + static_cast<uint64_t>(place) * width, width);
    for (size_t d = rank; d-- > 0;) {
      if (entry.shape[d] == 1) continue;  // its stride may be any number
      place += entry.stride[d];
      if (++index[d] < entry.shape[d]) break;
      place -= entry.stride[d] * entry.shape[d];
      index[d] = 0;
    }
  }
}

void check_truth_values(const InputFile& file, const TensorEntry& entry, const void* values) {
  const auto* bytes = static_cast<const uint8_t*>(values);
  if (entry.dtype == Dtype::kBool &&
      std::any_of(bytes, bytes + entry.num_bytes(), [](uint8_t byte) { return byte > 1; })) {
    file.fail("tensor " + shown(joined(entry.path)) + " is of truth values and holds bytes other than 0 and 1");
  }
}

using Named = std::vector<std::pair<std::string, const TensorEntry*>>;

const std::string* first_name(const TensorEntry& entry) {
  return entry.path.empty() ? nullptr : std::get_if<std::string>(&entry.path.front());
}

// The key of the dict that a tensor lies in, joined by dots where it lies in other dicts.
std::string dict_of(const TensorEntry& entry) {
  return entry.path.size() < 2 ? "" : joined(KeyPath(entry.path.begin(), entry.path.end() - 1));
}

// The tensors that lie in the dict `key`, without a container between.
Named in_dict(const Contents& contents, const std::string& key) {
  Named found;
  for (const TensorEntry& entry : contents.tensors) {
    if (entry.path.size() > 1 && dict_of(entry) == key) found.emplace_back(joined({entry.path.back()}), &entry);
  }
  return found;
}

Named in_no_container(const Contents& contents) {
  Named found;
  for (const TensorEntry& entry : contents.tensors) {
    if (entry.path.size() == 1) found.emplace_back(joined(entry.path), &entry);
  }
  return found;
}

// "model.*" or, where weights were averaged, the averages: the evaluation used these. A `key` chooses one of both.
Named of_checkpoint(const Contents& contents, const std::string& key) {
  Named found;
  for (const std::string prefix : {"ema.", "model."}) {
    if (!key.empty() && prefix != key + ".") continue;
    for (const auto& [name, entry] : in_no_container(contents)) {
      if (name.starts_with(prefix)) found.emplace_back(name.substr(prefix.size()), entry);
    }
    if (!found.empty()) break;
  }
  return found;
}

// The dicts of tensors, joined by commas, and an empty text where there are none.
std::string shown_dicts(const Contents& contents) {
  std::set<std::string> dicts;
  for (const TensorEntry& entry : contents.tensors) {
    if (entry.path.size() > 1) dicts.insert(dict_of(entry));
  }
  constexpr size_t kMost = 10;
  std::vector<std::string> names;
  for (const std::string& dict : dicts) {
    names.push_back(names.size() < kMost ? displayed(dict) : "...");
    if (names.size() > kMost) break;
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Named below_key(const Contents& contents, const std::string& place, const std::string& key, std::string& from) {
  const auto kind = contents.metadata.find("kind");
  const bool is_checkpoint = kind != contents.metadata.end() && kind->second == kCheckpointKind;
  Named found = is_checkpoint ? of_checkpoint(contents, key) : in_dict(contents, key);
  if (found.empty()) {
    const std::string others = is_checkpoint ? "model and, with averaged weights, ema" : shown_dicts(contents);
    throw RunError(fmt::format("{} has no tensors below the key {}{}", place, displayed(key),
                               others.empty() ? ", nor below any other" : "; there are " + others));
  }
  from = fmt::format("{}key {}", is_checkpoint ? "a checkpoint of settrain, " : "its ", displayed(key));
  return found;
}

// The keys below which a model's tensors usually lie, the likeliest first.
constexpr std::array<std::string_view, 3> kUsualKeys{"state_dict", "model_state_dict", "model"};

// The tensors below several usual keys, one in the other, as in {"model": {"state_dict": ...}}.
Named in_nested_dicts(const Contents& contents, std::string& from) {
  std::map<std::vector<std::ptrdiff_t>, Named> found;  // by the places of their keys among the usual ones
  for (const TensorEntry& entry : contents.tensors) {
    std::vector<std::ptrdiff_t> places;
    for (size_t i = 0; i + 1 < entry.path.size(); ++i) {
      const auto* key = std::get_if<std::string>(&entry.path[i]);
      const auto place = key ? std::ranges::find(kUsualKeys, *key) : kUsualKeys.end();
      if (place == kUsualKeys.end()) break;
      places.push_back(place - kUsualKeys.begin());
    }
    if (places.size() > 1 && places.size() + 1 == entry.path.size()) {
      found[places].emplace_back(joined({entry.path.back()}), &entry);
    }
  }
  if (found.empty()) return {};
  const KeyPath& path = found.begin()->second.front().second->path;
  from = "its key " + joined({path.begin(), path.end() - 1});
  return found.begin()->second;
}

Named choose(const Contents& contents, const std::string& place, std::string& from) {
  const auto kind = contents.metadata.find("kind");
  if (kind != contents.metadata.end() && kind->second == kCheckpointKind) {
    from = "a checkpoint of settrain";
    return of_checkpoint(contents, "");
  }
  if (Named found = in_nested_dicts(contents, from); !found.empty()) return found;
  for (const std::string_view key : kUsualKeys) {
    Named found = in_dict(contents, std::string(key));
    if (found.empty()) continue;
    from = fmt::format("its key {}", key);
    return found;
  }
  std::set<std::string> dicts;
  for (const TensorEntry& entry : contents.tensors) {
    if (const std::string* first = first_name(entry); first && entry.path.size() == 2) dicts.insert(*first);
  }
  // A tensor or two beside a dict of many are figures of the training.
  Named found = in_no_container(contents);
  if (dicts.empty() || (dicts.size() == 1 && found.size() >= in_dict(contents, *dicts.begin()).size())) return found;
  if (dicts.size() > 1) {
    std::vector<std::string> names;
    for (const std::string& name : dicts) names.push_back(shown(name));
    throw RunError(
        fmt::format("{}: which of its dicts of tensors are the model's: {}? None is called state_dict or model; "
                    "model.pretrained_key chooses one",
                    place, fmt::join(names, ", ")));
  }
  from = "its key " + shown(*dicts.begin());
  return in_dict(contents, *dicts.begin());
}

// A file without tensors may hold them in a dict of some library's own class.
std::string opaque_values(const Contents& contents) {
  std::set<std::string> names;
  for (const Leaf& leaf : contents.leaves) {
    if (const auto* opaque = std::get_if<Opaque>(&leaf.value)) names.insert(displayed(opaque->name));
  }
  constexpr size_t kMost = 3;
  if (names.empty()) return "";
  if (names.size() > kMost) names.erase(std::next(names.begin(), kMost), names.end());
  return fmt::format(", but objects of classes that are not read: {}", fmt::join(names, ", "));
}

// How often torch's AveragedModel was updated, which stands beside the model's tensors.
bool is_counter(const std::pair<std::string, const TensorEntry*>& entry) {
  return entry.first == "n_averaged" && entry.second->num_elements() == 1;
}

// Where all names begin with it.
bool remove_prefix(Named& named, std::string_view prefix) {
  const auto begins = [prefix](const auto& entry) { return entry.first.starts_with(prefix); };
  if (named.empty() || !std::all_of(named.begin(), named.end(), begins)) return false;
  for (auto& entry : named) entry.first.erase(0, prefix.size());
  return true;
}

// Names of modules could hold dots once: "...denselayer1.norm.1.weight" for "...denselayer1.norm1.weight".
bool modernise_dense_layer(std::string& name) {
  constexpr std::string_view kLayer = "denselayer";
  const size_t layer = name.find(kLayer);
  if (layer == std::string::npos) return false;
  const size_t part = name.find_first_not_of("0123456789", layer + kLayer.size());
  if (part == std::string::npos) return false;
  const std::string_view rest = std::string_view(name).substr(part);
  for (const std::string_view old : {".norm.1.", ".norm.2.", ".conv.1.", ".conv.2."}) {
    if (!rest.starts_with(old)) continue;
    name.erase(part + old.size() - 3, 1);  // the dot before the number
    return true;
  }
  return false;
}

// The file of torchvision's ViT-B/16 has "...mlp.linear_1.weight" for "...mlp.0.weight".
bool modernise_mlp(std::string& name) {
  if (name.find("encoder.layers.") == std::string::npos) return false;
  for (const auto& [old, renewed] : {std::pair{".mlp.linear_1.", ".mlp.0."}, std::pair{".mlp.linear_2.", ".mlp.3."}}) {
    const size_t place = name.find(old);
    if (place == std::string::npos) continue;
    name.replace(place, std::string_view(old).size(), renewed);
    return true;
  }
  return false;
}

}  // namespace

WeightFile::WeightFile(const std::filesystem::path& path) : file_(path), contents_(contents_of(file_)) {
  check_total(file_, contents_);
}

void WeightFile::read(const TensorEntry& entry, void* target) {
  if (!checked_.contains(entry.storage)) {
    check_crc(file_, entry.storage);
    checked_.insert(entry.storage);
  }
  if (entry.is_contiguous()) {
    read_contiguous(file_, entry, target);
    return;
  }
  // Whole storages are kept, which are no more bytes than the file has: each is read once, however many views it has.
  std::vector<uint8_t>& memory = storages_[entry.storage];
  if (memory.empty()) {
    memory.resize(entry.storage.size);
    file_.read(memory.data(), memory.size(), entry.storage.begin);
  }
  gather(entry, memory.data() + static_cast<uint64_t>(entry.offset) * bytes_of(entry.dtype),
         static_cast<uint8_t*>(target));
  check_truth_values(file_, entry, target);
}

void read_contiguous(const InputFile& file, const TensorEntry& entry, void* target) {
  file.read(target, entry.num_bytes(),
            entry.storage.begin + static_cast<uint64_t>(entry.offset) * bytes_of(entry.dtype));
  check_truth_values(file, entry, target);
}

StateDict find_state_dict(const Contents& contents, const std::string& place, const std::string& key) {
  std::string from;
  Named named = key.empty() ? choose(contents, place, from) : below_key(contents, place, key, from);
  if (named.empty()) throw RunError(place + " holds no tensors of a model" + opaque_values(contents));
  if (named.size() > 1) std::erase_if(named, is_counter);
  const auto note = [&from](std::string_view what) { from += (from.empty() ? "" : ", ") + std::string(what); };
  for (bool is_done = false; !is_done;) {
    is_done = true;
    for (const std::string_view prefix : {"module.", "_orig_mod.", "model.", "net.", "backbone."}) {
      if (!remove_prefix(named, prefix)) continue;
      note(fmt::format("without the prefix {}", prefix));
      is_done = false;
    }
  }
  bool is_modernised = false;
  for (auto& entry : named) is_modernised |= modernise_dense_layer(entry.first) || modernise_mlp(entry.first);
  if (is_modernised) note("old names renewed");
  StateDict found{.tensors = {}, .from = std::move(from)};
  for (const auto& [name, entry] : named) {
    if (!found.tensors.emplace(name, *entry).second) {
      throw RunError(fmt::format("{}: two of its tensors would be named {}", place, shown(name)));
    }
  }
  return found;
}

}  // namespace settrain
