// The model that a golden file is about.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "models/registry.h"

namespace settrain {

struct GoldenModel {
  std::string name;                   // as the file names it
  std::vector<std::string> settings;  // of the section `model`, as --set takes them
  int64_t num_classes;
};

/// The settings that a name says without more: "resnet18"; "densenet_bc_40_40", the papers' DenseNet-BC of depth 40 and
/// growth 40; "..._normed" with a normalised head.
std::vector<std::string> settings_named(const std::string& name);

/// Builds it, with initial weights from ATen's generator. `channels`, `height` and `width` of its images: what the
/// model was made for unless given.
std::shared_ptr<Model> build(const ModelRegistry& registry, const GoldenModel& golden,
                             const std::vector<int64_t>& image = {});

}  // namespace settrain
