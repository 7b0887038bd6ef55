// The interface of classifiers to the rest of the program.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/model_output.h"

namespace settrain {

/// Base of every model. Parameter and buffer names are torchvision's.
class Model : public torch::nn::Module {
 public:
  /// `images`: [batch, channels, height, width] float, normalised.
  virtual ModelOutput forward(const at::Tensor& images) = 0;

  int64_t num_parameters() const;

  /// Names of the parameters of its heads.
  std::set<std::string> head_parameters() const;

  /// The layers before the head, from the images on: for each, the parts of the network that belong to it, by the
  /// first words of their parameters' names ("layer4.0"). What no layer names goes with the head. timm's groups are
  /// followed where timm has the network (group_matcher() with coarse=False).
  virtual std::vector<std::vector<std::string>> layers() const { return {}; }

  /// For each parameter, how many layers its own is below the head: 0 for the head's.
  std::map<std::string, int64_t> layers_below_head() const;

  /// Keeps the body, the head or both as they are. A body that is kept stays in evaluation mode whatever train() says,
  /// so its batch statistics stay too.
  void freeze(bool body, bool head);
  void train(bool on = true) override;

  /// Gradient checkpointing, see Stage::recompute_activations().
  void recompute_activations();

  /// Whether weights and activations lie with their channels last. Values stay as they are; images of forward() should
  /// be laid out alike.
  void set_channels_last(bool on);

 private:
  bool body_is_frozen_ = false;
};

}  // namespace settrain
