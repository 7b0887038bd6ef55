// Keys of the section `model` that every model has.
#pragma once

#include <string>

#include "models/registry.h"
#include "src/config/schema.h"

namespace settrain {

struct ModelOptions {
  std::string head = "linear";
  bool head_bias = true;
  std::string pretrained = kNone;  // or a file

  static constexpr const char* kNone = "none";

  static config::Keys keys();
};

/// The section `model` of a config: those keys, and the registry's models with theirs.
config::Section model_section(const ModelRegistry& registry);

}  // namespace settrain
