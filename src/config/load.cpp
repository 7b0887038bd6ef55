#include "src/config/load.h"

#include <utility>

#include "src/config/declarations.h"
#include "src/config/files.h"
#include "src/config/overrides.h"
#include "src/config/problems.h"
#include "src/config/resolve.h"
#include "src/config/stack.h"

namespace settrain::config {
namespace {

void check_rules(const Schema& schema, const Config& config) {
  Problems problems;
  for (const Rule& rule : schema.rules) {
    try {
      rule(config);
    } catch (const PlacedError& error) {
      problems.add(error.origin(), error.what());
    }
  }
  problems.throw_if_any();
}

}  // namespace

Config load(const Schema& schema, const std::filesystem::path& file, const std::vector<std::string>& overrides,
            const std::vector<std::string>& places) {
  const Declarations declarations(schema);
  const std::string stem = file.empty() ? "settrain" : file.stem().string();
  Problems problems;
  std::optional<std::vector<Layer>> layers = read_files(file, stem, declarations, problems);
  if (!layers) problems.throw_if_any();
  layers->push_back(read_overrides(overrides, places, declarations, problems));
  const Stacked stacked = stack(*layers, declarations, stem, problems);
  std::vector<Entry> entries = resolve(declarations, stacked, stem, problems);
  problems.throw_if_any();
  Config config(std::move(entries));
  check_rules(schema, config);
  return config;
}

}  // namespace settrain::config
