#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "src/config/declarations.h"
#include "src/config/document.h"
#include "src/config/value.h"

namespace settrain::config {
namespace {

using Json = nlohmann::ordered_json;

// A ${...}, which is typed once it is filled in.
Json reference_schema() {
  return {{"type", "string"}, {"pattern", "\\$\\{"}};
}

Json any_of(std::initializer_list<Json> schemas) {
  return {{"anyOf", Json(Json::array_t(schemas))}};
}

Json bound_json(double value) {
  const bool is_whole = std::trunc(value) == value && std::abs(value) < 1e15;
  return is_whole ? Json(static_cast<int64_t>(value)) : Json(value);
}

Json key_schema(const Key& key);

// The map that may stand for a number that changes by epoch.
Json curve_schema(const Key& key) {
  Json schema = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  for (const Key& part : curve_keys(key)) {
    Json of_part = key_schema(part);
    if (part.choices.empty()) of_part.erase("default");
    schema["properties"][last_name(part.name)] = of_part;
  }
  schema["required"] = {"from", "to"};
  return schema;
}

Json number_schema(const Key& key, const char* type) {
  Json number = {{"type", type}};
  if (key.minimum) number[key.minimum->included ? "minimum" : "exclusiveMinimum"] = bound_json(key.minimum->value);
  if (key.maximum) number[key.maximum->included ? "maximum" : "exclusiveMaximum"] = bound_json(key.maximum->value);
  Json schema = any_of({number, reference_schema()});
  for (const auto& [word, meaning] : key.words) schema["anyOf"].push_back({{"const", word}});
  if (key.changes) schema["anyOf"].push_back(curve_schema(key));
  return schema;
}

Json text_schema(const Key& key) {
  if (key.choices.empty()) return {{"type", "string"}};
  Json choices = key.choices;
  // YAML reads these two as booleans, where they are meant as words.
  for (const std::string& choice : key.choices) {
    if (choice == "true" || choice == "false") choices.push_back(choice == "true");
  }
  return any_of({{{"enum", choices}}, reference_schema()});
}

struct TypeSchema {
  const Key& key;

  Json operator()(bool) const { return any_of({{{"type", "boolean"}}, reference_schema()}); }
  Json operator()(int64_t) const { return number_schema(key, "integer"); }
  Json operator()(double) const { return number_schema(key, "number"); }
  Json operator()(const std::string&) const {
    Json schema = text_schema(key);
    if (key.non_empty && key.choices.empty()) schema["minLength"] = 1;
    return schema;
  }
  Json operator()(const Integers&) const { return list_of(number_schema(key, "integer")); }
  Json operator()(const Reals&) const { return list_of(number_schema(key, "number")); }
  Json operator()(const Texts&) const { return list_of(text_schema(key)); }

 private:
  Json list_of(const Json& element) const {
    Json schema = {{"type", "array"}, {"items", element}};
    if (key.non_empty) schema["minItems"] = 1;
    if (key.distinct_elements) schema["uniqueItems"] = true;
    return schema;
  }
};

Json default_json(const Key& key) {
  if (const std::string* word = word_for(key, key.default_value)) return *word;
  return std::visit([](const auto& value) { return Json(value); }, key.default_value);
}

// The JSON Schema of one key: type, range, choices, default and description. A value that is no text may also be a text
// with a `${...}`.
Json key_schema(const Key& key) {
  Json schema = std::visit(TypeSchema{key}, key.default_value);
  if (is_optional(key)) schema["default"] = default_json(key);
  schema["description"] = key.unit.empty() ? key.help : key.help + " [" + key.unit + "]";
  return schema;
}

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

// The schema of a path whatever the variant: any of its declarations.
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

// Where this variant is chosen, only its own keys and the common ones are allowed, each as it declares them.
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

// The names of a section's variants with their help, which editors show beside each.
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
    if (declaration.of_curve) continue;
    Json& map = map_at(root, parent_path(declaration.path), true);
    map["properties"][last_name(declaration.path)] = path_schema(declarations, declaration.path);
  }
  for (const Section& section : schema.sections) describe_section(declarations, section, root);
  return root.dump(2) + "\n";
}

}  // namespace settrain::config
