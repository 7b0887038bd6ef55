// The variants of a section, from a registry.
#pragma once

#include <vector>

#include "src/config/schema.h"

namespace settrain::config {

/// One variant an entry; entries have `name`, `help` and `keys`.
template <class Registry>
std::vector<Variant> variants_of(const Registry& registry) {
  std::vector<Variant> variants;
  for (const auto& entry : registry.entries()) variants.push_back({entry.name, entry.help, entry.keys});
  return variants;
}

}  // namespace settrain::config
