// The data sets of the program, for tests.
#pragma once

#include <string>
#include <vector>

#include "datasets/registry.h"
#include "src/config/load.h"
#include "src/config/schema.h"

namespace settrain::test {

inline const DatasetRegistry& builtin_datasets() {
  static const DatasetRegistry registry = [] {
    DatasetRegistry datasets("data set");
    register_builtin_datasets(datasets);
    return datasets;
  }();
  return registry;
}

/// Loads the data set `name`. `settings`: keys of its section, such as "root=/data"; the others have their defaults.
inline Dataset load_dataset(const std::string& name, const std::vector<std::string>& settings) {
  config::Schema schema;
  schema.sections.push_back({"data", "", {}, "name", name, config::variants_of(builtin_datasets())});
  std::vector<std::string> overrides{"data.name=" + name};
  for (const std::string& setting : settings) overrides.push_back("data." + setting);
  return builtin_datasets().at(name).make(config::load(schema, "", overrides));
}

}  // namespace settrain::test
