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
  static constexpr const char *kBody = "body", *kHead = "head", *kNorm = "norm", *kAdapter = "adapter";

  bool trains(const char* part) const;  // whether `trainable` names it
  bool trains_below_head() const;       // some of the body, or all of it

  static config::Keys keys();
};

/// An adapter is trained in place of a vision transformer's own weights.
struct AdapterOptions {
  enum class Kind { kNone, kLora, kAdaptFormer };
  using enum Kind;

  Kind kind = kNone;
  int64_t rank = 8;
  double alpha = 8, scale = 0.1;  // of LoRA and of AdaptFormer
  config::Texts layers = {kQkv, kProj};

  static constexpr const char *kQkv = "qkv", *kProj = "proj";
  static constexpr const char* kKey = "model.adapter.kind";

  /// Reads the config's; kNone where the model has no such keys.
  static AdapterOptions read(const config::Config& config);

  static config::Keys keys();
};

/// The parts that the config trains: model.trainable, and by default [adapter, head] where there is an adapter.
config::Texts trained_parts(const config::Config& config);

/// The key `stochastic_depth` of networks of residual blocks.
template <class Options>
config::Key random_depth_key(double Options::*member, double default_value) {
  return config::key("stochastic_depth", member, default_value,
                     "Probability that an image skips a branch of the last block in training; it rises linearly from 0 "
                     "at the first block.")
      .at_least(0)
      .below(1);
}

/// The key `dropout` of networks that have it.
template <class Options>
config::Key dropout_key(double Options::*member, double default_value) {
  return config::key("dropout", member, default_value,
                     "Probability that a feature before the head is set to zero in training.")
      .at_least(0)
      .below(1);
}

/// Throws KeyError for model.name, "`model` takes `images`, the data's are HEIGHTxWIDTH", unless the data's images fit.
void check_images(bool fit, std::string_view model, std::string_view images, const ModelContext& data);

/// Refuses combinations of those keys that would do nothing, or not what they say.
void model_rule(const config::Config& config);

/// Refuses parts of model.trainable that the model does not have. `registry` outlives it.
config::Rule trainable_rule(const ModelRegistry& registry);

/// The section `model` of a config: those keys, and the registry's models with theirs.
config::Section model_section(const ModelRegistry& registry);

}  // namespace settrain
