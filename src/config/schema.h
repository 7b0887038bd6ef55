// The keys that a config may hold, by section, and the rules that involve several keys.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/config/key.h"

namespace settrain::config {

class Config;
struct Entry;

/// One of the things a section chooses between, with keys of its own: a loss, a model, a data set, a schedule.
struct Variant {
  std::string name;
  std::string help;  // one sentence, with the source where it is from a paper
  Keys keys;
};

/// A map of the YAML file. `name` is its dotted path: "", "optimizer", "data.label_noise".
struct Section {
  std::string name;
  std::string help;
  Keys keys;             // allowed whatever the variant
  std::string selector;  // the key that chooses the variant: "name", "kind"; empty where there are no variants
  std::string default_variant;
  std::vector<Variant> variants;
};

/// A rule that involves several keys. Throws by config.fail(path, message) where it is broken; each rule is run on its
/// own, and all failures are reported together with the others.
using Rule = std::function<void(const Config&)>;

/// A rule on the value of a single key, run on the entry of each. Throws by config.fail(entry.path, message).
using EntryRule = std::function<void(const Config&, const Entry&)>;

struct Schema {
  std::vector<Section> sections;  // in the order of the dump and of the reference page; parents before their children
  std::vector<Rule> rules;        // on the config alone
  std::vector<Rule> needs{};      // on things outside of the config, such as a folder
  std::vector<EntryRule> entry_needs{};
};

/// The variants of a section, from a registry whose entries have `name`, `help` and `keys`.
template <class Registry>
std::vector<Variant> variants_of(const Registry& registry) {
  std::vector<Variant> variants;
  for (const auto& entry : registry.entries()) variants.push_back({entry.name, entry.help, entry.keys});
  return variants;
}

}  // namespace settrain::config
