#include "src/config/differences.h"

#include <algorithm>
#include <utility>

#include "src/config/declarations.h"
#include "src/config/yaml.h"
#include "src/core/text.h"

namespace settrain::config {
namespace {

using Leaves = std::vector<std::pair<std::string, std::string>>;

std::string text_of(const YamlNode& node) {
  if (!node.is(YamlNode::Kind::kList)) return node.quoted ? in_quotes(node.text) : node.text;
  std::vector<std::string> elements;
  for (const YamlNode& element : node.values) elements.push_back(text_of(element));
  return "[" + join(elements, ", ") + "]";
}

void collect(const YamlNode& node, const std::string& path, Leaves& leaves) {
  if (!node.is(YamlNode::Kind::kMap)) {
    if (!path.empty()) leaves.emplace_back(path, text_of(node));
    return;
  }
  for (size_t i = 0; i < node.keys.size(); ++i) collect(node.values[i], join_path(path, node.keys[i].text), leaves);
}

Leaves leaves_of(const std::string& yaml, const char* name) {
  Problems problems;
  const std::optional<YamlNode> root = parse_yaml(yaml, {name, 0, true}, problems);
  problems.throw_if_any();
  Leaves leaves;
  collect(*root, "", leaves);
  return leaves;
}

const std::string* find(const Leaves& leaves, const std::string& path) {
  const auto found = std::find_if(leaves.begin(), leaves.end(), [&](const auto& leaf) { return leaf.first == path; });
  return found == leaves.end() ? nullptr : &found->second;
}

}  // namespace

std::vector<Difference> differences(const std::string& before, const std::string& after) {
  const Leaves old_leaves = leaves_of(before, "the recorded configuration");
  const Leaves new_leaves = leaves_of(after, "the configuration");
  std::vector<Difference> found;
  for (const auto& [path, value] : new_leaves) {
    const std::string* old_value = find(old_leaves, path);
    if (!old_value || *old_value != value) found.push_back({path, old_value ? *old_value : "", value});
  }
  for (const auto& [path, value] : old_leaves) {
    if (!find(new_leaves, path)) found.push_back({path, value, ""});
  }
  return found;
}

}  // namespace settrain::config
