// The model that a golden file is about.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/registry.h"

namespace settrain {

struct GoldenModel {
  std::string name;                   // as the file names it
  std::vector<std::string> settings;  // of the section `model`, as --set takes them
  int64_t num_classes;
  std::vector<int64_t> image;  // [channels, height, width]; empty: what the model was made for
};

/// The settings that a name says without more: "resnet18"; "densenet_bc_40_40", the papers' DenseNet-BC of depth 40 and
/// growth 40; "..._normed" with a normalised head.
std::vector<std::string> settings_named(std::string name);

/// What a NAME.json says: `model`, `num_classes`, `input_shape`, and `settings` where its name does not say them.
GoldenModel golden_model(const nlohmann::json& golden);

/// Builds it, with initial weights from ATen's generator. Throws ConfigError where there is no such model.
std::shared_ptr<Model> build(const ModelRegistry& registry, const GoldenModel& golden);

}  // namespace settrain
