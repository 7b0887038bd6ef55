#include "src/config/overrides.h"

#include <algorithm>

#include "src/config/text.h"

namespace settrain::config {
namespace {

constexpr int kFirstOverride = 1 << 20;  // Origin::source: behind all files

// The keys of a section, where all of them take this word.
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
  if (declarations.is_map(path)) {
    keys = keys_with_word(path, text.substr(equals + 1), declarations);
    if (keys.empty()) {
      return problems.add(origin, path, "is a section, set its keys one by one: --set " + path + ".KEY=VALUE");
    }
  }
  const std::optional<YamlNode> value = parse_yaml(text.substr(equals + 1), source, problems);
  if (!declarations.is_key(keys.front())) {
    layer.unknown.push_back({path, origin});
  } else if (value) {
    for (const std::string& key : keys) {
      std::erase_if(layer.leaves, [&](const Leaf& leaf) { return leaf.path == key; });
      add_leaf(key, origin, *value, layer, problems);
    }
  }
}

}  // namespace

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
