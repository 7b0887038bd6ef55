// The files of published weights that the models know, where they come from and where they are looked for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "datasets/download.h"
#include "models/registry.h"

namespace settrain {

struct PublishedWeights {
  std::string model;  // a choice of model.name
  std::string title;  // whose weights these are
  std::string page;   // an address for people
  RemoteFile file;    // its url is empty where no single address gives it, and its name where that is not known either
};

/// Those of all models that have some, in the registry's order.
std::vector<PublishedWeights> published_weights(const ModelRegistry& models);

/// $SETTRAIN_WEIGHTS, or "weights": where the configs look.
std::filesystem::path weights_folder();

}  // namespace settrain
