#include "src/config/key_schema.h"

#include <cmath>

#include "src/config/range.h"

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

Json number_schema(const Key& key, const char* type) {
  Json number = {{"type", type}};
  if (key.minimum) number[key.minimum->included ? "minimum" : "exclusiveMinimum"] = bound_json(key.minimum->value);
  if (key.maximum) number[key.maximum->included ? "maximum" : "exclusiveMaximum"] = bound_json(key.maximum->value);
  Json schema = any_of({number, reference_schema()});
  for (const auto& [word, meaning] : key.words) schema["anyOf"].push_back({{"const", word}});
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
  for (const auto& [word, meaning] : key.words) {
    if (key.default_value == Value(meaning)) return word;
  }
  return std::visit([](const auto& value) { return Json(value); }, key.default_value);
}

}  // namespace

Json key_schema(const Key& key) {
  Json schema = std::visit(TypeSchema{key}, key.default_value);
  if (is_optional(key)) schema["default"] = default_json(key);
  schema["description"] = key.unit.empty() ? key.help : key.help + " [" + key.unit + "]";
  return schema;
}

}  // namespace settrain::config
