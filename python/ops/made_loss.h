// The registered losses as the package makes them.
#pragma once

#include <c10/util/Exception.h>

#include <cstdint>
#include <memory>
#include <string>

#include "losses/loss.h"
#include "src/core/error.h"

namespace settrain {

struct MadeLoss {
  std::unique_ptr<Loss> loss;
  bool couples_samples, takes_label_sets, takes_mixed_labels;
};

/// A loss for so many classes. `settings` are lines: "loss.KEY=VALUE", values in YAML; "class_counts=N,N,..." and
/// "class_weights=X,X,..." where the loss has some. One for each thread, since a loss keeps tensors of its own; made
/// once for the same arguments. Throws ConfigError and DataError.
MadeLoss& loss_of(const std::string& settings, int64_t num_classes);

/// Whether samples are coupled in the loss of these settings.
bool couples_samples(const std::string& settings);

/// Throws ConfigError where the settings are wrong whatever the number of classes.
void check_settings(const std::string& settings);

/// A message about keys of the section `loss` as one about arguments of the Python classes.
std::string in_python_words(const std::string& message);

/// As with_value_errors(), for functions that make and call losses.
template <class Function>
auto with_loss_errors(const Function& function) {
  try {
    return function();
  } catch (const Error& error) {
    TORCH_CHECK_VALUE(false, in_python_words(error.what()));
  }
}

}  // namespace settrain
