#include "src/config/stack.h"

#include <utility>

#include "src/config/interpolate.h"
#include "src/config/range.h"
#include "src/config/text.h"

namespace settrain::config {
namespace {

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
      if (belongs(leaf)) stacked_.leaves.insert_or_assign(leaf.path, leaf);
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

  // Null, with a problem, where there is none of that name.
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

  void report_unknown(const Unknown& unknown) {
    std::string suggestion = declarations_.suggestion(unknown.path, stacked_.choices);
    if (suggestion.empty()) suggestion = "; `settrain config keys` lists them all";
    problems_.add(unknown.origin, on_one_line(unknown.path), "unknown key" + suggestion);
  }

  // Whether the variants chosen by now have this key; a problem where they have not. Without a valid choice it stays
  // open.
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

}  // namespace

Stacked stack(const std::vector<Layer>& layers, const Declarations& declarations, const std::string& file,
              Problems& problems) {
  Stacker stacker(declarations, file, problems);
  for (const Layer& layer : layers) stacker.add(layer);
  return stacker.take();
}

}  // namespace settrain::config
