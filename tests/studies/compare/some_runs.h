// Runs to compare that nobody trained.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/studies/compare/comparison.h"

namespace settrain::test {

/// A value at a path of a configuration.
struct Given {
  std::string path;
  config::Value value;
  bool is_free = false;
};

using Checkpoints = std::vector<CheckpointValues>;

inline ComparedRun some_run(const std::string& folder, int64_t seed, std::vector<Given> given,
                            Checkpoints checkpoints = {{"last", {{"test/top1", 0.5}}}},
                            config::Texts select = {"val/top1"}) {
  given.push_back({"seed", seed});
  given.push_back({"name", folder, true});
  given.push_back({"select", std::move(select)});
  std::vector<config::Entry> entries;
  for (const auto& [path, value, is_free] : given) {
    config::Key key;
    key.name = path.substr(path.rfind('.') + 1);
    key.default_value = value;
    key.is_free = is_free;
    entries.push_back({path, key, value, {"default"}});
  }
  return {folder, config::Config(std::move(entries)), seed, std::move(checkpoints)};
}

}  // namespace settrain::test
