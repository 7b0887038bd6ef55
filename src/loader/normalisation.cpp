#include "src/loader/normalisation.h"

#include <fmt/format.h>

#include "src/core/error.h"

namespace settrain {
namespace {

constexpr const char* kNone = "none";  // pixels stay in [0, 1]

Registry<NamedNormalisation> all_statistics(const DatasetRegistry& datasets) {
  Registry<NamedNormalisation> all("normalisation");
  all.add({kNone, {}});
  for (const DatasetEntry& entry : datasets.entries()) {
    for (const NamedNormalisation& named : entry.statistics) all.add(named);
  }
  return all;
}

}  // namespace

std::vector<std::string> normalisation_names(const DatasetRegistry& datasets) {
  std::vector<std::string> names = all_statistics(datasets).names();
  names.insert(names.begin(), "auto");
  return names;
}

Normalisation normalisation_for(const DatasetRegistry& datasets, const std::string& name, const Dataset& dataset) {
  const std::string& chosen = name == "auto" ? dataset.normalisation : name;
  Normalisation statistics = all_statistics(datasets).at(chosen).statistics;
  if (chosen == kNone) {
    statistics.mean.assign(static_cast<size_t>(dataset.channels), 0.0F);
    statistics.std.assign(static_cast<size_t>(dataset.channels), 1.0F);
  }
  if (static_cast<int64_t>(statistics.mean.size()) != dataset.channels) {
    throw KeyError("data.normalisation",
                   fmt::format("'{}' is for images of {} channels, those of '{}' have {}; choose another, or auto",
                               chosen, statistics.mean.size(), dataset.name, dataset.channels));
  }
  return statistics;
}

}  // namespace settrain
