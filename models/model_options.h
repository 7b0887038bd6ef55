// Keys of the section `model` that every model has.
#pragma once

#include <string>
#include <string_view>

#include "models/registry.h"
#include "src/config/config.h"
#include "src/config/schema.h"

namespace settrain {

struct ModelOptions {
  enum class Head { kLinear, kNormalised, kTwoHead, kScaled };
  enum class PretrainedHead { kKeep, kDraw, kTauNormalised };
  using enum PretrainedHead;

  Head head = Head::kLinear;
  bool head_bias = true;
  std::string pretrained = kNone;  // or a file
  std::string pretrained_key = kAuto;
  PretrainedHead pretrained_head = kKeep;
  double head_tau = 1;
  bool sync_batch_norm = false;
  config::Texts trainable = {kBody, kHead};

  static constexpr const char *kNone = "none", *kAuto = "auto";
  static constexpr const char *kBody = "body", *kHead = "head";

  bool trains(const char* part) const;  // kBody or kHead

  static config::Keys keys();
};

/// Throws KeyError for model.name, "`model` takes `images`, the data's are HEIGHTxWIDTH", unless the data's images fit.
void check_images(bool fit, std::string_view model, std::string_view images, const ModelContext& data);

/// Refuses combinations of those keys that would do nothing, or not what they say.
void model_rule(const config::Config& config);

/// The section `model` of a config: those keys, and the registry's models with theirs.
config::Section model_section(const ModelRegistry& registry);

}  // namespace settrain
