#include "src/config/layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include "src/config/interpolate.h"
#include "src/core/text.h"

namespace settrain::config {
namespace {

namespace fs = std::filesystem;
using Kind = YamlNode::Kind;

constexpr size_t kLargestFile = 1024 * 1024;  // bytes
constexpr int kFirstOverride = 1 << 20;       // Origin::source: behind all files

// Adds the value of a key to the layer, or a problem where it is empty, a map, or a list with anything but scalars.
void add_leaf(const std::string& path, const Origin& key_origin, const YamlNode& value, Layer& layer,
              Problems& problems) {
  switch (value.kind) {
    case Kind::kNull:
      return problems.add(key_origin, path, "has no value");
    case Kind::kMap: {
      const auto is_end = [](const YamlNode& key) { return key.text == "from" || key.text == "to"; };
      const bool is_curve = std::any_of(value.keys.begin(), value.keys.end(), is_end);
      return problems.add(value.origin, path,
                          std::string(value.keys.empty() ? "is an empty map" : "is a map, but the key takes a value") +
                              (is_curve ? ", which cannot change by epoch" : ""));
    }
    case Kind::kList:
      for (const YamlNode& element : value.values) {
        if (!element.is(Kind::kScalar)) {
          return problems.add(element.origin, path, "elements of a list must be single values");
        }
      }
      break;
    case Kind::kScalar:
      break;
  }
  layer.leaves.push_back({path, value});
}

// The keys of a section if all of them take this word; none otherwise.
std::vector<std::string> keys_with_word(const std::string& section, const std::string& word,
                                        const Declarations& declarations) {
  std::vector<std::string> keys;
  for (const Declaration& declaration : declarations.all()) {
    if (!declaration.path.starts_with(section + ".")) continue;
    const auto& words = declaration.key.words;
    if (std::none_of(words.begin(), words.end(), [&](const auto& known) { return known.first == word; })) return {};
    keys.push_back(declaration.path);
  }
  return keys;
}

class Flattener {
 public:
  Flattener(const Declarations& declarations, Problems& problems) : declarations_(declarations), problems_(problems) {}

  void walk(const YamlNode& map, const std::string& path) {
    for (size_t i = 0; i < map.keys.size(); ++i) visit(map.keys[i], map.values[i], path);
  }

  Layer take() { return std::move(layer_); }

 private:
  void visit(const YamlNode& key, const YamlNode& value, const std::string& parent) {
    if (!is_plain_name(key, parent)) return;
    const std::string path = join_path(parent, key.text);
    const auto [first, is_new] = places_.emplace(path, key.origin);
    if (!is_new) problems_.add(key.origin, path, "given twice, first at " + first->second.text);
    const bool is_map = declarations_.is_map(path);
    if (declarations_.is_key(path) && !(is_map && value.is(Kind::kMap) && !value.keys.empty())) {
      if (is_new) add_leaf(path, key.origin, value, layer_, problems_);
    } else if (is_map) {
      visit_section(key, value, path);
    } else if (is_new && path != "extends") {
      layer_.unknown.push_back({path, key.origin});
    }
  }

  bool is_plain_name(const YamlNode& key, const std::string& parent) {
    if (!key.is(Kind::kScalar) || key.text.empty()) {
      problems_.add(key.origin, parent, "a key must be a name");
      return false;
    }
    if (key.text == "<<" && !key.quoted) {
      problems_.add(key.origin, parent, "merge keys (<<) are not supported, use extends");
      return false;
    }
    if (key.text.find('.') != std::string::npos) {
      problems_.add(key.origin, join_path(parent, on_one_line(key.text)),
                    "dotted keys are for --set; in a file, write a map within a map");
      return false;
    }
    return true;
  }

  void visit_section(const YamlNode& key, const YamlNode& value, const std::string& path) {
    if (value.is(Kind::kMap)) return walk(value, path);
    if (value.is(Kind::kNull)) {
      return problems_.add(key.origin, path, "is an empty section, give it keys or remove it");
    }
    std::string message = "is a section, it must be a map of keys";
    for (const Section& section : declarations_.schema().sections) {
      const bool meant_variant = section.name == path && value.is(Kind::kScalar) && find_variant(section, value.text);
      if (meant_variant) message += ", write {" + section.selector + ": " + value.text + "}";
    }
    std::vector<std::string> words;
    for (const std::string& known : keys_with_word(path, value.text, declarations_)) {
      words.push_back(known.substr(path.size() + 1) + ": " + value.text);
    }
    if (!words.empty()) message += ", write {" + join(words, ", ") + "}";
    problems_.add(value.origin, path, message);
  }

  const Declarations& declarations_;
  Problems& problems_;
  Layer layer_;
  std::map<std::string, Origin> places_;
};

// The file's bytes. Throws InvalidValue where it cannot be read.
std::string read_bytes(const fs::path& file) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) throw InvalidValue("is a folder, not a file");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw InvalidValue(std::string("cannot be read: ") + std::strerror(errno));
  std::string bytes(kLargestFile + 1, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (stream.bad()) throw InvalidValue("cannot be read to its end");
  bytes.resize(static_cast<size_t>(stream.gcount()));
  if (bytes.size() > kLargestFile) throw InvalidValue("is larger than 1 MiB, which is no configuration");
  return bytes;
}

// ", did you mean 'quickstart.yaml'?" for a file that does not exist, from its folder.
std::string nearest_file(const fs::path& file) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(file.has_parent_path() ? file.parent_path() : ".", error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() == ".yaml") names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return did_you_mean(file.filename().string(), names, (file.parent_path() / "").string());
}

class FileReader {
 public:
  FileReader(const std::string& stem, const Declarations& declarations, Problems& problems)
      : stem_(stem), declarations_(declarations), problems_(problems) {}

  std::optional<std::vector<Layer>> read(fs::path file) {
    // The command line named the first file; after it, each file names its base.
    Origin named_at{on_one_line(file.string())};
    std::string named_by, written = file.string();
    while (!file.empty()) {
      if (!enter(file, named_at, named_by)) return std::nullopt;
      const std::optional<YamlNode> root = parse(file, written, named_at, named_by);
      if (!root) return std::nullopt;
      layers_.insert(layers_.begin(), flatten(*root, declarations_, problems_));
      const YamlNode* base = base_of(*root);
      if (!base) break;
      const std::optional<std::string> name = base_name(*base);
      if (!name) return std::nullopt;
      file = (file.parent_path() / *name).lexically_normal();
      written = *name;
      named_at = base->origin;
      named_by = "extends";
    }
    return std::move(layers_);
  }

 private:
  bool enter(const fs::path& file, const Origin& named_at, const std::string& named_by) {
    std::error_code error;
    const fs::path canonical = fs::weakly_canonical(file, error);
    const bool cycle = std::find(entered_.begin(), entered_.end(), canonical) != entered_.end();
    names_.push_back(on_one_line(file.string()));
    entered_.push_back(canonical);
    if (cycle) problems_.add(named_at, named_by, "files extend each other: " + join(names_, " -> "));
    return !cycle;
  }

  // `written`: the file as its user wrote it.
  std::optional<YamlNode> parse(const fs::path& file, const std::string& written, const Origin& named_at,
                                const std::string& named_by) {
    const Source source{names_.back(), static_cast<int>(layers_.size()), true};
    const std::string prefix = named_by.empty() ? "" : in_quotes(file.string()) + " ";
    try {
      std::error_code error;
      if (!fs::exists(file, error)) {
        throw InvalidValue((named_by.empty() ? "does not exist" : "does not exist (looked for beside this file)") +
                           nearest_file(file) + shell_hint(written));
      }
      const std::optional<YamlNode> root = parse_yaml(read_bytes(file), source, problems_);
      if (root && !root->is(YamlNode::Kind::kMap) && !root->is(YamlNode::Kind::kNull)) {
        problems_.add(root->origin, "",
                      "a configuration is a map of keys, not a " +
                          std::string(root->is(YamlNode::Kind::kList) ? "list" : "single value"));
        return std::nullopt;
      }
      return root;
    } catch (const InvalidValue& error) {
      problems_.add(named_at, named_by, prefix + error.what());
      return std::nullopt;
    }
  }

  static const YamlNode* base_of(const YamlNode& root) {
    for (size_t i = 0; i < root.keys.size(); ++i) {
      if (root.keys[i].text == "extends") return &root.values[i];
    }
    return nullptr;
  }

  std::optional<std::string> base_name(const YamlNode& base) {
    if (!base.is(YamlNode::Kind::kScalar) || base.text.empty()) {
      problems_.add(base.origin, "extends", "must be the name of one file");
      return std::nullopt;
    }
    const Lookup lookup = [this](const std::string& name) -> std::string {
      if (name == "file") return stem_;
      throw InvalidValue("cannot refer to keys, since it decides what they are");
    };
    try {
      return expand(base.text, lookup).text;
    } catch (const InvalidValue& error) {
      problems_.add(base.origin, "extends", error.what());
      return std::nullopt;
    }
  }

  const std::string& stem_;
  const Declarations& declarations_;
  Problems& problems_;
  std::vector<Layer> layers_;
  std::vector<fs::path> entered_;
  std::vector<std::string> names_;
};

Layer flatten_below(const YamlNode& map, const std::string& path, const Declarations& declarations,
                    Problems& problems) {
  Flattener flattener(declarations, problems);
  flattener.walk(map, path);
  return flattener.take();
}

void read_override(const std::string& text, const Source& source, const Declarations& declarations, Layer& layer,
                   Problems& problems) {
  const Origin origin = source.at(1, 1);
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return problems.add(origin, "", "must be key.path=value");
  }
  const std::string path = text.substr(0, equals);
  if (path == "extends") return problems.add(origin, "", "extends belongs into a file");
  std::vector<std::string> keys{path};
  const bool is_key = declarations.is_key(path);
  if (declarations.is_map(path) && !is_key) {
    keys = keys_with_word(path, text.substr(equals + 1), declarations);
    if (keys.empty()) {
      return problems.add(origin, path, "is a section, set its keys one by one: --set " + path + ".KEY=VALUE");
    }
  }
  const std::optional<YamlNode> value = parse_yaml(text.substr(equals + 1), source, problems);
  if (!declarations.is_key(keys.front())) {
    layer.unknown.push_back({path, origin});
  } else if (value && is_key && declarations.is_map(path) && value->is(Kind::kMap) && !value->keys.empty()) {
    const Layer curve = flatten_below(*value, path, declarations, problems);
    layer.leaves.insert(layer.leaves.end(), curve.leaves.begin(), curve.leaves.end());
    layer.unknown.insert(layer.unknown.end(), curve.unknown.begin(), curve.unknown.end());
  } else if (value) {
    for (const std::string& key : keys) {
      std::erase_if(layer.leaves, [&](const Leaf& leaf) { return leaf.path == key; });
      add_leaf(key, origin, *value, layer, problems);
    }
  }
}

}  // namespace

Layer flatten(const YamlNode& root, const Declarations& declarations, Problems& problems) {
  return flatten_below(root, "", declarations, problems);
}

std::optional<std::vector<Layer>> read_files(const fs::path& file, const std::string& stem,
                                             const Declarations& declarations, Problems& problems) {
  return FileReader(stem, declarations, problems).read(file);
}

Layer read_overrides(const std::vector<std::string>& overrides, const std::vector<std::string>& places,
                     const Declarations& declarations, Problems& problems) {
  Layer layer;
  for (size_t i = 0; i < overrides.size(); ++i) {
    const std::string place = i < places.size() ? places[i] : "--set " + on_one_line(overrides[i]);
    read_override(overrides[i], {place, kFirstOverride + static_cast<int>(i), false}, declarations, layer, problems);
  }
  return layer;
}

}  // namespace settrain::config
