// Losses for tests, built as the program builds them.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "losses/loss.h"
#include "src/config/load.h"
#include "src/config/variants.h"

namespace settrain::test {

inline const LossRegistry& builtin_losses() {
  static const LossRegistry registry = [] {
    LossRegistry losses("loss");
    register_builtin_losses(losses);
    return losses;
  }();
  return registry;
}

/// `classes` classes of 1, 4, 9, ... training images.
inline LossContext context_of(int64_t classes) {
  LossContext context{classes, {}, 0};
  for (int64_t j = 1; j <= classes; ++j) context.num_train += context.class_counts.emplace_back(j * j);
  return context;
}

/// The loss `name` with the settings "key=value" of its section.
inline std::unique_ptr<Loss> build_loss(const std::string& name, const LossContext& context,
                                        const std::vector<std::string>& settings = {}) {
  const config::Schema schema{{{"loss", "", {}, "name", name, config::variants_of(builtin_losses())}}, {}};
  std::vector<std::string> overrides;
  for (const std::string& setting : settings) overrides.push_back("loss." + setting);
  return builtin_losses().at(name).make(config::load(schema, {}, overrides), context);
}

/// `noise` [batch, draws, classes], or undefined for the loss' own.
inline LossInput input_of(const at::Tensor& scores, const at::Tensor& labels, const at::Tensor& noise = {}) {
  LossInput input;
  input.output.scores = scores;
  input.labels = labels;
  input.noise_key = {.seed = 4, .step = 10, .first_position = 0};
  if (noise.defined()) input.noise = noise;
  return input;
}

}  // namespace settrain::test
