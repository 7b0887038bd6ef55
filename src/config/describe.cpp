#include "src/config/describe.h"

#include <algorithm>
#include <array>

#include "src/config/format.h"
#include "src/config/range.h"
#include "src/config/text.h"

namespace settrain::config {

std::string type_text(const Key& key) {
  // In the order of Value's alternatives.
  constexpr std::array<const char*, std::variant_size_v<Value>> kTypes = {
      "boolean", "integer", "number", "text", "list of integers", "list of numbers", "list of texts"};
  std::string text = kTypes[key.default_value.index()];
  for (const auto& [word, meaning] : key.words) text += " or " + word;
  return text;
}

std::string default_text(const Key& key) {
  return is_optional(key) ? yaml_default(key) : "required";
}

std::string range_text(const Key& key) {
  if (!key.choices.empty()) return "one of " + join(key.choices, ", ");
  const std::string bounds = bounds_text(key);
  if (!bounds.empty()) return bounds;
  return key.non_empty ? "not empty" : "";
}

bool same_declaration(const Key& a, const Key& b) {
  return a.name == b.name && a.default_value == b.default_value && a.help == b.help && a.unit == b.unit &&
         a.minimum == b.minimum && a.maximum == b.maximum && a.choices == b.choices && a.words == b.words &&
         a.non_empty == b.non_empty && a.distinct_elements == b.distinct_elements;
}

std::vector<VariantGroup> group_variants(const Section& section) {
  std::vector<VariantGroup> groups;
  for (const Variant& variant : section.variants) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const VariantGroup& group) {
      return std::equal(variant.keys.begin(), variant.keys.end(), group.front()->keys.begin(),
                        group.front()->keys.end(), same_declaration);
    });
    if (same == groups.end()) {
      groups.push_back({&variant});
    } else {
      same->push_back(&variant);
    }
  }
  return groups;
}

}  // namespace settrain::config
