#include <algorithm>
#include <set>

#include "src/config/declarations.h"
#include "src/config/document.h"
#include "src/config/key_schema.h"

namespace settrain::config {
namespace {

using Json = nlohmann::ordered_json;

std::string first_name(const std::string& path) {
  return path.substr(0, path.find('.'));
}

// The map at a path, made where it is not there yet.
Json& map_at(Json& root, const std::string& path, bool closed) {
  if (path.empty()) return root;
  const std::string name = first_name(path);
  Json& map = root["properties"][name];
  if (map.is_null()) {
    map = {{"type", "object"}, {"properties", Json::object()}};
    if (closed) map["additionalProperties"] = false;
  }
  return map_at(map, name == path ? "" : path.substr(name.size() + 1), closed);
}

// What a path accepts whatever the variant: any of its declarations.
Json path_schema(const Declarations& declarations, const std::string& path) {
  std::vector<Json> schemas;
  for (const Declaration* declaration : declarations.of(path)) {
    const Json schema = key_schema(declaration->key);
    if (std::find(schemas.begin(), schemas.end(), schema) == schemas.end()) schemas.push_back(schema);
  }
  if (schemas.size() == 1) return schemas.front();
  return {{"anyOf", schemas}};
}

// The names directly in a section's map that do not depend on its variant, those of maps included.
std::set<std::string> common_names(const Declarations& declarations, const Section& section) {
  std::set<std::string> names;
  const std::string prefix = section.name.empty() ? "" : section.name + ".";
  for (const Declaration& declaration : declarations.all()) {
    const bool of_variant = declaration.section == &section && declaration.variant;
    if (!of_variant && declaration.path.starts_with(prefix))
      names.insert(first_name(declaration.path.substr(prefix.size())));
  }
  if (section.name.empty()) names.insert("extends");
  return names;
}

// With this variant chosen, only its own keys and the common ones, each as it declares them.
Json variant_condition(const Section& section, const Variant& variant, std::set<std::string> names) {
  Json then = {{"properties", Json::object()}};
  for (const Key& key : variant.keys) {
    map_at(then, parent_path(key.name), false)["properties"][last_name(key.name)] = key_schema(key);
    names.insert(first_name(key.name));
  }
  then["propertyNames"]["enum"] = names;
  Json chosen;
  chosen["properties"][section.selector]["const"] = variant.name;
  chosen["required"] = Json::array({section.selector});
  return {{"if", chosen}, {"then", then}};
}

// The chooser's values with their sentences, which editors show beside each.
Json selector_schema(const Section& section) {
  Json schema = key_schema(selector_key(section));
  Json choices = Json::array();
  for (const Variant& variant : section.variants) {
    choices.push_back({{"const", variant.name}, {"description", variant.help}});
  }
  schema["anyOf"][0] = {{"oneOf", choices}};
  return schema;
}

void describe_section(const Declarations& declarations, const Section& section, Json& root) {
  Json& map = map_at(root, section.name, true);
  if (!section.help.empty()) map["description"] = section.help;
  if (section.selector.empty()) return;
  map["properties"][section.selector] = selector_schema(section);
  const std::set<std::string> names = common_names(declarations, section);
  for (const Variant& variant : section.variants) map["allOf"].push_back(variant_condition(section, variant, names));
}

}  // namespace

std::string to_json_schema(const Schema& schema) {
  const Declarations declarations(schema);
  Json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
               {"title", "settrain configuration"},
               {"type", "object"},
               {"additionalProperties", false},
               {"properties", Json::object()}};
  root["properties"]["extends"] = {
      {"type", "string"}, {"description", "A file whose values this one takes over, named relative to this one."}};
  for (const Declaration& declaration : declarations.all()) {
    Json& map = map_at(root, parent_path(declaration.path), true);
    map["properties"][last_name(declaration.path)] = path_schema(declarations, declaration.path);
  }
  for (const Section& section : schema.sections) describe_section(declarations, section, root);
  return root.dump(2) + "\n";
}

}  // namespace settrain::config
