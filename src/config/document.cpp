#include "src/config/document.h"

#include <algorithm>
#include <array>

#include "src/config/declarations.h"
#include "src/config/value.h"
#include "src/core/table_text.h"
#include "src/core/text.h"

namespace settrain::config {
namespace {

constexpr const char* kIntroduction = R"(# Configuration reference

Generated from the program by `settrain config docs`; edit the declarations instead.

A configuration is a YAML file of nested maps. A key that a file does not give has its default. A value comes from, in
rising precedence: the default, the file named by `extends`, the file itself, and `--set key.path=value` on the command
line.

- `extends: base.yaml` takes over the values of another file, named relative to this one, which may extend a third.
- `${env:VAR}` stands for an environment variable, `${env:VAR:-value}` says what to take where it is unset or empty.
- `${key.path}` stands for another key's value, `${file}` for the file's name without its ending; `$${` is a literal
  `${`.
- A number of the type `number or {from, to, curve}` may change by epoch: `tau: {from: 1.0, to: 0.1, curve: linear}`
  gives its values in the first and in the last epoch, and the curve between them: `linear` (the default), `cosine`, or
  `exponential`, for which both values are above 0.
- A section with a table per variant takes only the keys of the variant that is chosen. A file or `--set` that chooses
  another variant drops what a file below gave to the former one.
- An unknown key, a wrong type or a value out of range is an error; all of them are reported at once, with their places.
)";

constexpr size_t kColumns = 6;
using Row = std::array<std::string, kColumns>;

// Whether two variants declare a key in the same way.
bool same_declaration(const Key& a, const Key& b) {
  return a.name == b.name && a.default_value == b.default_value && a.help == b.help && a.unit == b.unit &&
         a.minimum == b.minimum && a.maximum == b.maximum && a.choices == b.choices && a.words == b.words &&
         a.non_empty == b.non_empty && a.distinct_elements == b.distinct_elements && a.changes == b.changes;
}

// One row for all variants of the section that declare the key alike, at the first of them.
std::vector<const Declaration*> declared_alike(const Declarations& declarations, const Declaration& declaration) {
  std::vector<const Declaration*> alike;
  for (const Declaration* other : declarations.of(declaration.path)) {
    if (same_declaration(other->key, declaration.key)) alike.push_back(other);
  }
  return alike;
}

std::string variant_names(const std::vector<const Declaration*>& declarations) {
  std::vector<std::string> names;
  for (const Declaration* declaration : declarations) {
    if (declaration->variant) names.push_back(declaration->variant->name);
  }
  return names.empty() ? "" : " [" + join(names, ", ") + "]";
}

// The default as in YAML, or "required".
std::string default_text(const Key& key) {
  return is_optional(key) ? yaml_default(key) : "required";
}

// "> 0", ">= 0 and < 1", "one of sgd, adam", "not empty"; an empty text where every value will do.
std::string range_text(const Key& key) {
  if (!key.choices.empty()) return "one of " + join(key.choices, ", ");
  const std::string bounds = bounds_text(key);
  if (!bounds.empty()) return bounds;
  return key.non_empty ? "not empty" : "";
}

// Variants of a section that declare the same keys, in the order of their first.
using VariantGroup = std::vector<const Variant*>;
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

std::string cell(const std::string& text) {
  return replace_characters(text, {{'|', "\\|"}});
}

std::string code(const std::string& text) {
  return text.empty() ? "" : "`" + cell(text) + "`";
}

std::string range_cell(const Key& key) {
  if (key.choices.empty()) return cell(range_text(key));
  std::vector<std::string> choices;
  for (const std::string& choice : key.choices) choices.push_back(code(choice));
  return join(choices, ", ");
}

std::string table(const std::string& section, const Keys& keys) {
  if (keys.empty()) return "";
  std::string text = "\n| Key | Type | Default | Range | Unit | Meaning |\n|---|---|---|---|---|---|\n";
  for (const Key& key : keys) {
    const std::string default_cell = default_text(key) == "required" ? "required" : code(default_text(key));
    const std::vector<std::string> cells = {code(join_path(section, key.name)),
                                            type_text(key),
                                            default_cell,
                                            range_cell(key),
                                            cell(key.unit),
                                            cell(key.help)};
    text += "| " + join(cells, " | ") + " |\n";
  }
  return text;
}

std::string variants_text(const Section& section) {
  std::string text;
  for (const VariantGroup& group : group_variants(section)) {
    std::vector<std::string> names;
    for (const Variant* variant : group) names.push_back(code(variant->name));
    text += "\n### " + code(join_path(section.name, section.selector)) + ": " + join(names, ", ") + "\n\n";
    for (const Variant* variant : group) {
      text += (group.size() > 1 ? "- " + code(variant->name) + ": " : "") + variant->help + "\n";
    }
    text += group.front()->keys.empty() ? "\nNo keys of its own.\n" : table(section.name, group.front()->keys);
  }
  return text;
}

}  // namespace

std::string list_keys(const Schema& schema, size_t columns) {
  const Declarations declarations(schema);
  std::vector<Row> rows = {{"key", "type", "default", "range", "unit", "meaning [variants that have it]"}};
  for (const Declaration& declaration : declarations.all()) {
    if (declaration.of_curve) continue;
    const auto alike = declared_alike(declarations, declaration);
    if (alike.front() != &declaration) continue;
    const Key& key = declaration.key;
    rows.push_back({declaration.path, type_text(key), default_text(key), range_text(key), key.unit,
                    key.help + variant_names(alike)});
  }
  if (columns > 0) {
    std::string text;
    for (const Row& row : rows) {
      std::string head = row[0];
      for (size_t i = 1; i + 1 < kColumns; ++i) head += row[i].empty() ? "" : "  " + row[i];
      text += wrap_words(head + "\n" + row.back(), columns, 4);
    }
    return text;
  }
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], count_characters(row[i]));
  }
  std::string text;
  for (const Row& row : rows) {
    for (size_t i = 0; i + 1 < kColumns; ++i)
      text += row[i] + std::string(widths[i] - count_characters(row[i]) + 2, ' ');
    text += row.back() + "\n";
  }
  return text;
}

std::string to_markdown(const Schema& schema) {
  std::string text = kIntroduction;
  for (const Section& section : schema.sections) {
    text += "\n## " + (section.name.empty() ? std::string("Top level") : code(section.name)) + "\n";
    if (!section.help.empty()) text += "\n" + section.help + "\n";
    Keys common = section.keys;
    if (!section.selector.empty()) common.insert(common.begin(), selector_key(section));
    text += table(section.name, common) + variants_text(section);
  }
  return text;
}

}  // namespace settrain::config
