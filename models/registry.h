// How a model becomes something a config can name. Apart from model.h, whose LibTorch headers take long to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "src/config/config.h"
#include "src/core/registry.h"

namespace settrain {

class Model;

/// The data that a model must fit.
struct ModelContext {
  int64_t num_classes;
  int64_t channels, height, width;  // of an input image
};

/// Weights of a model that others trained, on images of ModelEntry::usual's size; and how the images became the input.
struct PretrainedSource {
  std::string name, url;                   // empty where none are known
  std::string normalisation;               // a choice of data.normalisation
  std::string interpolation = "bilinear";  // a choice of data.interpolation
  double crop_share = 0.875;               // of the shorter side, which the evaluation's centre crop keeps
  std::string file{};                      // the name of the file that a page at `url` leads to; else empty
};

/// `keys` are the keys of the section `model` that only this model has. `make` draws the initial weights from ATen's
/// generator; it throws KeyError where a key or the images do not suit the model.
struct ModelEntry {
  std::string name;
  std::string help;
  config::Keys keys;
  std::function<std::shared_ptr<Model>(const config::Config&, const ModelContext&)> make;
  ModelContext usual;  // what the model was made for: the classes and images of its best-known data set
  PretrainedSource pretrained = {};
};

using ModelRegistry = Registry<ModelEntry>;

/// The model without a body, which takes features in place of images.
inline constexpr const char* kHeadOnly = "head_only";

/// Adds every model of this folder.
void register_builtin_models(ModelRegistry& registry);

}  // namespace settrain
