#include "src/loader/normalisation.h"

#include <fmt/format.h>

#include "src/core/error.h"
#include "src/core/registry.h"

namespace settrain {
namespace {

struct Entry {
  std::string name;
  Normalisation statistics;  // of no channels: pixels stay in [0, 1]
};

Registry<Entry> make_entries() {
  Registry<Entry> entries("normalisation");
  entries.add({"none", {}});
  // The rounded values that the papers' experiments use on CIFAR-100 too.
  entries.add({"cifar10", {{125.3F / 255, 123.0F / 255, 113.9F / 255}, {63.0F / 255, 62.1F / 255, 66.7F / 255}}});
  // Mean and standard deviation, per channel, over all pixels of all training images of the published files (validation
  // images included), in float64.
  entries.add({"cifar100", {{0.50707516F, 0.48654887F, 0.44091784F}, {0.26733429F, 0.25643846F, 0.27615047F}}});
  entries.add({"fashion_mnist", {{0.28604060F}, {0.35302424F}}});
  entries.add({"imagenet", {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}}});
  return entries;
}

const Registry<Entry>& entries() {
  static const Registry<Entry> entries = make_entries();
  return entries;
}

}  // namespace

std::vector<std::string> normalisation_names() {
  return entries().names();
}

Normalisation normalisation_for(const std::string& name, const Dataset& dataset) {
  const std::string& chosen = name == "auto" ? dataset.normalisation : name;
  Normalisation statistics = entries().at(chosen).statistics;
  if (chosen == "none") {
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
