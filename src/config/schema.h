// Every key a config may hold, by section; and what a file with these keys must satisfy beyond single ranges.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/config/key.h"

namespace settrain::config {

class Config;

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

struct Schema {
  std::vector<Section> sections;  // in the order of the dump and of the reference page; parents before their children
  std::vector<Rule> rules;        // on the config alone
  std::vector<Rule> needs{};      // on what must be there outside of it, such as a folder
};

}  // namespace settrain::config
