#include "src/config/load.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "src/config/declarations.h"
#include "src/config/layer.h"
#include "src/config/problems.h"
#include "src/config/value.h"
#include "src/core/text.h"

namespace settrain::config {
namespace {

// Layers on top of each other.
struct Stacked {
  std::map<std::string, Leaf> leaves;  // the topmost of each path
  Choices choices;                     // every section with variants
};

class Stacker {
 public:
  Stacker(const Declarations& declarations, const std::string& file, Problems& problems)
      : declarations_(declarations), file_(file), problems_(problems) {
    for (const Section& section : declarations.schema().sections) {
      if (!section.selector.empty()) stacked_.choices[&section] = find_variant(section, section.default_variant);
    }
  }

  void add(const Layer& layer) {
    for (const Leaf& leaf : layer.leaves) choose(leaf);
    for (const Unknown& unknown : layer.unknown) report_unknown(unknown);
    for (const Leaf& leaf : layer.leaves) {
      if (!belongs(leaf)) continue;
      drop_other_form(leaf);
      stacked_.leaves.insert_or_assign(leaf.path, leaf);
    }
  }

  Stacked take() { return std::move(stacked_); }

 private:
  void choose(const Leaf& leaf) {
    for (auto& [section, chosen] : stacked_.choices) {
      if (leaf.path != join_path(section->name, section->selector)) continue;
      const Variant* wanted = wanted_variant(*section, leaf);
      if (wanted != chosen) drop_variants_keys(*section);
      chosen = wanted;
    }
  }

  // The variant that a leaf names; null, with a problem, where there is none of that name.
  const Variant* wanted_variant(const Section& section, const Leaf& leaf) {
    if (!leaf.value.is(YamlNode::Kind::kScalar)) {
      problems_.add(leaf.value.origin, leaf.path, "is a list, must be one name");
      return nullptr;
    }
    const Lookup lookup = [&](const std::string& name) -> std::string {
      if (name == "file") return file_;
      throw InvalidValue("cannot refer to other keys, since it chooses which keys there are");
    };
    try {
      const std::string name = expand(leaf.value.text, lookup).text;
      const std::string error = element_error(selector_key(section), name);
      if (!error.empty()) throw InvalidValue(error);
      return find_variant(section, name);
    } catch (const InvalidValue& error) {
      problems_.add(leaf.value.origin, leaf.path, error.what());
      return nullptr;
    }
  }

  void drop_variants_keys(const Section& section) {
    for (const Declaration& declaration : declarations_.all()) {
      if (declaration.section == &section && declaration.variant) stacked_.leaves.erase(declaration.path);
    }
  }

  // A number replaces the curve that a lower layer gave, and a curve the number.
  void drop_other_form(const Leaf& leaf) {
    stacked_.leaves.erase(parent_path(leaf.path));
    const std::string below = leaf.path + ".";
    std::erase_if(stacked_.leaves, [&](const auto& known) { return known.first.starts_with(below); });
  }

  void report_unknown(const Unknown& unknown) {
    std::string advice = advice_below_key(unknown.path);
    if (advice.empty()) advice = declarations_.suggestion(unknown.path, stacked_.choices);
    if (advice.empty()) advice = "; `settrain config keys` lists them all";
    problems_.add(unknown.origin, on_one_line(unknown.path), "unknown key" + advice);
  }

  // Advice for an unknown key whose path goes on below a key that takes a number; empty for other paths, and where the
  // name is nearly one of a curve.
  std::string advice_below_key(const std::string& path) const {
    const Declaration* above = nullptr;
    std::vector<std::string> may_change;  // the keys that are numbers which change by epoch, of any section
    for (const Declaration& declaration : declarations_.all()) {
      if (!Declarations::is_active(declaration, stacked_.choices)) continue;
      if (declaration.path == parent_path(path)) above = &declaration;
      if (declaration.key.changes) may_change.push_back(declaration.path);
    }
    if (!above) return "";
    if (above->key.changes) {
      const bool is_near = !declarations_.suggestion(path, stacked_.choices).empty();
      return is_near ? "" : "; a number that changes by epoch has the keys from, to and curve";
    }
    const Keys parts = curve_keys(above->key);
    const bool is_part =
        std::ranges::any_of(parts, [&](const Key& part) { return last_name(part.name) == last_name(path); });
    if (!is_part) return "; " + above->path + " takes a value, and no keys";
    return "; " + above->path + " takes one value, which cannot change by epoch" +
           (may_change.empty() ? "" : "; what can: " + join(may_change, ", "));
  }

  // Whether the variants chosen by now have this key; adds a problem where they do not. Without a valid choice there is
  // nothing to compare with.
  bool belongs(const Leaf& leaf) {
    for (const auto& [section, chosen] : stacked_.choices) {
      if (!chosen && leaf.path == join_path(section->name, section->selector)) return false;
    }
    std::vector<std::string> owners;
    const Section* section = nullptr;
    for (const Declaration* declaration : declarations_.of(leaf.path)) {
      section = declaration->section;
      if (Declarations::is_active(*declaration, stacked_.choices)) return true;
      owners.push_back(declaration->variant->name);
    }
    const Variant* chosen = stacked_.choices.at(section);
    if (chosen) {
      problems_.add(
          leaf.value.origin, leaf.path,
          "not a key of " + section->name + " " + chosen->name + " (it belongs to " + join(owners, ", ") + ")");
    }
    return false;
  }

  const Declarations& declarations_;
  const std::string& file_;
  Problems& problems_;
  Stacked stacked_;
};

// Puts the layers on top of each other, the lowest first. A layer that changes a section's variant drops what lower
// layers gave to the variants. Adds a problem for unknown keys, unknown variants, and keys of another variant than the
// one chosen in the layer or below. `file` is what `${file}` stands for.
Stacked stack(const std::vector<Layer>& layers, const Declarations& declarations, const std::string& file,
              Problems& problems) {
  Stacker stacker(declarations, file, problems);
  for (const Layer& layer : layers) stacker.add(layer);
  return stacker.take();
}

YamlNode text_node(const std::string& text, const Origin& origin) {
  return {YamlNode::Kind::kScalar, origin, text, true, {}, {}};
}

class Resolver {
 public:
  Resolver(const Declarations& declarations, const Stacked& stacked, const std::string& file, Problems& problems)
      : declarations_(declarations), stacked_(stacked), file_(file), problems_(problems) {
    for (const Declaration& declaration : declarations.all()) {
      if (Declarations::is_active(declaration, stacked.choices)) active_[declaration.path] = &declaration;
    }
  }

  std::vector<Entry> resolve_all() {
    std::vector<Entry> entries;
    for (const Declaration& declaration : declarations_.all()) {
      if (!Declarations::is_active(declaration, stacked_.choices)) continue;
      if (declaration.of_curve && !has_curve(parent_path(declaration.path))) continue;
      if (declaration.key.changes && has_curve(declaration.path)) continue;
      const std::optional<Value>& value = resolve(declaration);
      if (value) entries.push_back({declaration.path, declaration.key, *value, origin_of(declaration.path)});
    }
    return entries;
  }

 private:
  // The value of a key; nullopt where it is wrong, which has been reported then.
  const std::optional<Value>& resolve(const Declaration& declaration) {
    const auto known = values_.find(declaration.path);
    if (known != values_.end()) return known->second;
    being_resolved_.push_back(declaration.path);
    const auto leaf = stacked_.leaves.find(declaration.path);
    std::optional<Value> value =
        leaf == stacked_.leaves.end() ? resolve_default(declaration) : read(declaration, leaf->second.value);
    being_resolved_.pop_back();
    return values_.emplace(declaration.path, std::move(value)).first->second;
  }

  std::optional<Value> resolve_default(const Declaration& declaration) {
    const auto& [path, key, section, variant, of_curve] = declaration;
    const Origin origin = origin_of(path);
    const bool is_end_of_curve = of_curve && !std::holds_alternative<std::string>(key.default_value);
    if (is_end_of_curve) {
      problems_.add(stacked_.leaves.lower_bound(parent_path(path) + ".")->second.value.origin, path,
                    "must be given, as both ends of a curve");
      return std::nullopt;
    }
    if (!is_optional(key)) {
      problems_.add(origin,
                    path + ": must be given, in the file or by --set " + path + "=VALUE (" + type_text(key) + ")");
      return std::nullopt;
    }
    // Texts may hold ${...}.
    if (const auto* text = std::get_if<std::string>(&key.default_value))
      return read(declaration, text_node(*text, origin));
    if (const auto* texts = std::get_if<Texts>(&key.default_value)) {
      YamlNode list{YamlNode::Kind::kList, origin, {}, false, {}, {}};
      for (const std::string& text : *texts) list.values.push_back(text_node(text, origin));
      return read(declaration, list);
    }
    return key.default_value;
  }

  std::optional<Value> read(const Declaration& declaration, const YamlNode& node) {
    const Lookup lookup = [this](const std::string& path) { return look_up(path); };
    return read_value(declaration.path, declaration.key, node, lookup, problems_);
  }

  std::string look_up(const std::string& path) {
    if (path == "file") return file_;
    const auto found = active_.find(path);
    if (declarations_.is_map(path) && (!declarations_.is_key(path) || has_curve(path)))
      throw InvalidValue("refers to " + in_quotes(path) + ", which is a section, not a key");
    if (found == active_.end() || (found->second->of_curve && !has_curve(parent_path(path)))) {
      throw InvalidValue("refers to " + in_quotes(path) + ", which is no key" +
                         declarations_.suggestion(path, stacked_.choices));
    }
    refuse_cycle(path);
    const std::optional<Value>& value = resolve(*found->second);
    if (!value) throw BrokenReference();
    return reference_text(found->second->key, *value);
  }

  // Whether a map stands for the number at that path.
  bool has_curve(const std::string& path) const {
    const auto below = stacked_.leaves.lower_bound(path + ".");
    return below != stacked_.leaves.end() && below->first.starts_with(path + ".");
  }

  void refuse_cycle(const std::string& path) const {
    const auto begin = std::find(being_resolved_.begin(), being_resolved_.end(), path);
    if (begin == being_resolved_.end()) return;
    std::vector<std::string> cycle(begin, being_resolved_.end());
    cycle.push_back(path);
    throw InvalidValue("refers to itself: " + join(cycle, " -> "));
  }

  Origin origin_of(const std::string& path) const {
    const auto leaf = stacked_.leaves.find(path);
    return leaf == stacked_.leaves.end() ? Origin{Origin::kDefaultText, Origin::kDefault} : leaf->second.value.origin;
  }

  const Declarations& declarations_;
  const Stacked& stacked_;
  const std::string& file_;
  Problems& problems_;
  std::map<std::string, const Declaration*> active_;
  std::map<std::string, std::optional<Value>> values_;
  std::vector<std::string> being_resolved_;
};

// The value of every key that the chosen variants have, in the schema's order. Adds a problem for each that has no
// valid one, and leaves it out. `file` is what `${file}` stands for.
std::vector<Entry> resolve(const Declarations& declarations, const Stacked& stacked, const std::string& file,
                           Problems& problems) {
  return Resolver(declarations, stacked, file, problems).resolve_all();
}

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
  const auto check = [&](const Rule& rule) {
    if (const auto error = violation(rule, config)) problems.add(error->origin(), error->what());
  };
  std::ranges::for_each(schema.rules, check);
  std::ranges::for_each(schema.needs, check);
  for (const EntryRule& rule : schema.entry_needs) {
    for (const Entry& entry : config.entries()) check([&](const Config& whole) { rule(whole, entry); });
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

// Adds a problem for references and `extends`, which to_yaml() never writes.
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
