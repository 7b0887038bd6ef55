// What a classifier is to the rest of the program.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>

#include "models/model_output.h"
#include "src/config/config.h"
#include "src/core/registry.h"

namespace settrain {

/// Base of every model. Parameter and buffer names are torchvision's.
class Model : public torch::nn::Module {
 public:
  /// `images`: [batch, channels, height, width] float, normalised.
  virtual ModelOutput forward(const at::Tensor& images) = 0;
};

/// What a model must fit.
struct ModelContext {
  int64_t num_classes;
  int64_t channels, height, width;  // of an input image
};

/// `keys` are the keys of the section `model` that only this model has. `make` draws the initial weights from ATen's
/// generator.
struct ModelEntry {
  std::string name;
  std::string help;
  config::Keys keys;
  std::function<std::shared_ptr<Model>(const config::Config&, const ModelContext&)> make;
};

using ModelRegistry = Registry<ModelEntry>;

/// Adds every model of this folder.
void register_builtin_models(ModelRegistry& registry);

}  // namespace settrain
