// The losses behind torch.ops.settrain.loss, and their inputs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "losses/loss.h"

namespace settrain {

using OptionalTensor = std::optional<at::Tensor>;

struct MadeLoss {
  std::unique_ptr<Loss> loss;
  bool couples_samples, takes_label_sets;
};

/// One for each thread, since a loss keeps tensors of its own; made once for the same arguments. `settings`: lines
/// "loss.key=value", values in YAML.
MadeLoss& loss_of(const std::string& settings, const std::vector<int64_t>& class_counts, int64_t num_classes);

/// Throws ConfigError where the settings are wrong whatever the scores are.
void check_settings(const std::string& settings);

/// Of the loss that the settings name.
bool couples_samples(const std::string& settings);

/// The arguments of the operators that have no gradient.
struct Arguments {
  at::Tensor labels;     // [batch] int64, or [batch, classes]: label sets, in which what is not 0 is a label
  OptionalTensor noise;  // [batch, draws, classes], in place of drawn noise
  OptionalTensor step;   // [] int64, which the noise is a function of
  int64_t seed;
  std::string settings;
  std::vector<int64_t> class_counts;
};

/// What the losses are differentiated by.
struct Scores {
  at::Tensor scores;
  OptionalTensor scores_multi, estimates;

  bool want_gradient() const;
};

/// Half precision is computed in float32.
at::ScalarType dtype_of_losses(const at::Tensor& scores);

/// Throws ShapeError unless the scores have two dimensions.
void check_matrix(const at::Tensor& scores);

/// Throws ShapeError for label sets that the loss does not take.
LossInput input_of(const MadeLoss& made, const Scores& from, const Arguments& arguments);

}  // namespace settrain
