#include "src/config/describe.h"
#include "src/config/document.h"
#include "src/config/text.h"

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
- A section with a table per variant takes only the keys of the variant that is chosen. A file or `--set` that chooses
  another variant drops what a file below gave to the former one.
- An unknown key, a wrong type or a value out of range is an error; all of them are reported at once, with their places.
)";

std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
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
