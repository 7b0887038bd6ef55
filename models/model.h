// The interface of classifiers to the rest of the program.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "models/model_output.h"

namespace settrain {

/// The patches that a vision transformer makes of an image, and the embeddings of their places.
struct PatchGrid {
  std::string positions;         // name of the embeddings, [1, before + rows * columns, features]
  int64_t patch, rows, columns;  // a patch's height and width in pixels; numbers of patches
  int64_t before;                // tokens with an embedding that stand before the patches
  bool has_projection;           // CLIP's, `proj`
};

/// Base of every model. Parameter and buffer names are those of the source: torchvision's or timm's.
class Model : public torch::nn::Module {
 public:
  /// `images`: [batch, channels, height, width] float, normalised.
  virtual ModelOutput forward(const at::Tensor& images) = 0;

  /// Nothing where it is no vision transformer.
  virtual std::optional<PatchGrid> patch_grid() const { return std::nullopt; }

  int64_t num_parameters() const;

  /// Names of the parameters of its heads.
  std::set<std::string> head_parameters() const;

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
