#include "src/config/load.h"

#include <optional>
#include <utility>
#include <vector>

#include "src/config/declarations.h"
#include "src/config/files.h"
#include "src/config/overrides.h"
#include "src/config/problems.h"
#include "src/config/resolve.h"
#include "src/config/stack.h"
#include "src/config/yaml.h"

namespace settrain::config {
namespace {

std::optional<PlacedError> violation(const Rule& rule, const Config& config) {
  try {
    rule(config);
  } catch (const PlacedError& error) {
    return error;
  }
  return std::nullopt;
}

void check_rules(const Schema& schema, const Config& config) {
  Problems problems;
  for (const std::vector<Rule>* rules : {&schema.rules, &schema.needs}) {
    for (const Rule& rule : *rules) {
      if (const auto error = violation(rule, config)) problems.add(error->origin(), error->what());
    }
  }
  problems.throw_if_any();
}

// The config of `layers` and of the overrides on top.
Config of_layers(const Schema& schema, const Declarations& declarations, std::vector<Layer> layers,
                 const std::string& stem, const std::vector<std::string>& overrides,
                 const std::vector<std::string>& places, Problems& problems) {
  layers.push_back(read_overrides(overrides, places, declarations, problems));
  const Stacked stacked = stack(layers, declarations, stem, problems);
  std::vector<Entry> entries = resolve(declarations, stacked, stem, problems);
  problems.throw_if_any();
  Config config(std::move(entries));
  check_rules(schema, config);
  return config;
}

// to_yaml() escapes every reference, and extends nothing.
void refuse_references(const std::string& yaml, const YamlNode& root, const Origin& start, Problems& problems) {
  for (size_t i = yaml.find("${"); i != std::string::npos; i = yaml.find("${", i + 1)) {
    if (i == 0 || yaml[i - 1] != '$') problems.add(start, "", "refers to what is outside of it by ${...}");
  }
  for (const YamlNode& key : root.keys) {
    if (key.text == "extends") problems.add(key.origin, "extends", "extends another file");
  }
}

}  // namespace

Config load(const Schema& schema, const std::filesystem::path& file, const std::vector<std::string>& overrides,
            const std::vector<std::string>& places) {
  const Declarations declarations(schema);
  const std::string stem = file.empty() ? "settrain" : file.stem().string();
  Problems problems;
  std::optional<std::vector<Layer>> layers = read_files(file, stem, declarations, problems);
  if (!layers) problems.throw_if_any();
  return of_layers(schema, declarations, std::move(*layers), stem, overrides, places, problems);
}

Config load_recorded(const Schema& schema, const std::filesystem::path& file) {
  return load({schema.sections, {}}, file, {});
}

Config load_amended(const Schema& schema, const std::filesystem::path& file,
                    const std::vector<std::string>& overrides) {
  const Config recorded = load_recorded(schema, file);
  Schema applied = schema;
  for (Rule& rule : applied.rules) {
    const auto known = violation(rule, recorded);
    if (!known) continue;
    rule = [rule, text = std::string(known->what())](const Config& config) {
      const auto error = violation(rule, config);
      if (error && error->what() != text) throw PlacedError(*error);
    };
  }
  return load(applied, file, overrides);
}

Config load_resolved(const Schema& schema, const std::string& yaml, const std::string& name,
                     const std::vector<std::string>& overrides) {
  const Declarations declarations(schema);
  Problems problems;
  const Source source{name, 0, true};
  const std::optional<YamlNode> root = parse_yaml(yaml, source, problems);
  if (root && !root->is(YamlNode::Kind::kMap)) problems.add(source.at(1, 1), "", "is no map of keys");
  if (root) refuse_references(yaml, *root, source.at(1, 1), problems);
  problems.throw_if_any();
  return of_layers(schema, declarations, {flatten(*root, declarations, problems)}, "settrain", overrides, {}, problems);
}

}  // namespace settrain::config
