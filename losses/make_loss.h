// Makes the loss that the section `loss` of a config describes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "losses/loss.h"
#include "src/config/schema.h"

namespace settrain {

/// The section `loss` of a config: the keys of class weights, and the registry's losses with theirs.
config::Section loss_section(const LossRegistry& registry);

/// The names of the losses that have `trait`, for messages.
std::vector<std::string> losses_with(const LossRegistry& registry, bool LossEntry::*trait);

/// The rule of the loss that a config names. `registry` outlives it.
config::Rule loss_rule(const LossRegistry& registry);

/// Checks the config's class weights without the data: throws ConfigError where the loss takes none, and for a key that
/// the kind of weights does not read.
void check_class_weights(const LossRegistry& registry, const config::Config& config);

/// The loss that the config names, with its class weights. Numbers that change by epoch follow LossInput::epoch. Throws
/// ConfigError, and DataError where `context` lacks what the loss requires.
std::unique_ptr<Loss> make_loss(const LossRegistry& registry, const config::Config& config, const LossContext& context);

}  // namespace settrain
