#include "src/config/declarations.h"

#include <stdexcept>

#include "src/core/text.h"

namespace settrain::config {

std::string join_path(std::string_view section, std::string_view name) {
  return section.empty() ? std::string(name) : std::string(section) + "." + std::string(name);
}

std::string parent_path(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string last_name(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

Key selector_key(const Section& section) {
  Key key;
  key.name = section.selector;
  key.default_value = section.default_variant;
  key.help = "Chooses the variant of `" + section.name + "`; each has keys of its own.";
  for (const Variant& variant : section.variants) key.choices.push_back(variant.name);
  return key;
}

const Variant* find_variant(const Section& section, std::string_view name) {
  for (const Variant& variant : section.variants) {
    if (variant.name == name) return &variant;
  }
  return nullptr;
}

Declarations::Declarations(const Schema& schema) : schema_(schema) {
  for (const Section& section : schema.sections) {
    if (!section.selector.empty()) {
      if (!find_variant(section, section.default_variant)) {
        throw std::logic_error("section '" + section.name + "' has no variant '" + section.default_variant + "'");
      }
      declare(section, nullptr, selector_key(section));
    }
    for (const Key& key : section.keys) declare(section, nullptr, key);
    for (const Variant& variant : section.variants) {
      for (const Key& key : variant.keys) declare(section, &variant, key);
    }
  }
  for (const Declaration& declaration : all_) {
    if (is_map(declaration.path) && !declaration.key.changes)
      throw std::logic_error("'" + declaration.path + "' is declared as a key and as a map");
  }
}

void Declarations::declare(const Section& section, const Variant* variant, const Key& key) {
  const std::string path = join_path(section.name, key.name);
  for (const Declaration* other : of(path)) {
    if (!variant || !other->variant || other->variant == variant) {
      throw std::logic_error("the key '" + path + "' is declared twice");
    }
  }
  const bool is_number =
      std::holds_alternative<int64_t>(key.default_value) || std::holds_alternative<double>(key.default_value);
  if (!key.words.empty() && !is_number) {
    throw std::logic_error("the key '" + path + "' has words, but is no integer and no number");
  }
  if (key.changes && !std::holds_alternative<double>(key.default_value)) {
    throw std::logic_error("the key '" + path + "' changes by epoch, but is no number");
  }
  add({path, key, &section, variant});
  if (!key.changes) return;
  for (const Key& part : curve_keys(key)) add({join_path(section.name, part.name), part, &section, variant, true});
}

void Declarations::add(const Declaration& declaration) {
  by_path_.emplace(declaration.path, all_.size());
  all_.push_back(declaration);
  for (std::string map = parent_path(declaration.path); !map.empty(); map = parent_path(map)) maps_.insert(map);
}

std::vector<const Declaration*> Declarations::of(const std::string& path) const {
  std::vector<const Declaration*> found;
  const auto [first, last] = by_path_.equal_range(path);
  for (auto it = first; it != last; ++it) found.push_back(&all_[it->second]);
  return found;
}

bool Declarations::is_active(const Declaration& declaration, const Choices& choices) {
  if (!declaration.variant) return true;
  const auto chosen = choices.find(declaration.section);
  return chosen != choices.end() && chosen->second == declaration.variant;
}

std::string Declarations::suggestion(const std::string& path, const Choices& choices) const {
  const std::string map = parent_path(path), name = last_name(path);
  std::set<std::string> valid;
  for (const Declaration& declaration : all_) {
    if (!is_active(declaration, choices)) continue;
    for (std::string known = declaration.path; !known.empty(); known = parent_path(known)) valid.insert(known);
  }
  std::vector<std::string> beside, same_name, anywhere(valid.begin(), valid.end());
  for (const std::string& known : valid) {
    if (parent_path(known) == map) beside.push_back(last_name(known));
    if (last_name(known) == name) same_name.push_back(known);
  }
  if (same_name.size() == 1) return did_you_mean(same_name.front(), same_name);
  if (!map.empty() && !is_map(map)) return did_you_mean(path, anywhere);
  return did_you_mean(name, beside, join_path(map, ""));
}

}  // namespace settrain::config
