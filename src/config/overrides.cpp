#include "src/config/overrides.h"

#include "src/config/text.h"

namespace settrain::config {
namespace {

constexpr int kFirstOverride = 1 << 20;  // Origin::source: behind all files

void read_override(const std::string& text, int number, const Declarations& declarations, Layer& layer,
                   Problems& problems) {
  const Source source{"--set " + on_one_line(text), kFirstOverride + number, false};
  const Origin origin = source.at(1, 1);
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return problems.add(origin, "", "must be key.path=value");
  }
  const std::string path = text.substr(0, equals);
  if (path == "extends") return problems.add(origin, "", "extends belongs into a file");
  if (declarations.is_map(path)) {
    return problems.add(origin, path, "is a section, set its keys one by one: --set " + path + ".KEY=VALUE");
  }
  const std::optional<YamlNode> value = parse_yaml(text.substr(equals + 1), source, problems);
  if (!declarations.is_key(path)) {
    layer.unknown.push_back({path, origin});
  } else if (value) {
    std::erase_if(layer.leaves, [&](const Leaf& leaf) { return leaf.path == path; });
    add_leaf(path, origin, *value, layer, problems);
  }
}

}  // namespace

Layer read_overrides(const std::vector<std::string>& overrides, const Declarations& declarations, Problems& problems) {
  Layer layer;
  for (size_t i = 0; i < overrides.size(); ++i) {
    read_override(overrides[i], static_cast<int>(i), declarations, layer, problems);
  }
  return layer;
}

}  // namespace settrain::config
