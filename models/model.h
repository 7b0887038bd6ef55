// The interface of classifiers to the rest of the program.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/inference_form.h"
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
  /// `x`: images [batch, channels, height, width] float, normalised; or features [batch, width], which go to the head
  /// alone.
  ModelOutput forward(const at::Tensor& x);

  /// The body: from images to the head's inputs, [batch, features]; or pixels [batch, features, height, width] where
  /// the head sees these, as SqueezeNet's.
  virtual at::Tensor features(const at::Tensor& images) = 0;

  /// The head, with dropout before it where the network has some. Throws ShapeError for features of another width, and
  /// for features [batch, width] where it sees pixels.
  virtual ModelOutput classify(const at::Tensor& features) = 0;

  /// Nothing where it is no vision transformer.
  virtual std::optional<PatchGrid> patch_grid() const { return std::nullopt; }

  /// Modules in published weight files that this model lacks, such as an auxiliary classifier.
  virtual std::vector<std::string> parts_left_out() const { return {}; }

  int64_t num_parameters() const;
  int64_t num_trained_parameters() const;

  /// Names of the parameters of its heads.
  std::set<std::string> head_parameters() const;

  /// The layers before the head, from the images on: for each, the parts of the network that belong to it, by the
  /// first words of their parameters' names ("layer4.0"). What no layer names goes with the head. timm's groups are
  /// followed where timm has the network (group_matcher() with coarse=False).
  virtual std::vector<std::vector<std::string>> layers() const { return {}; }

  /// For each parameter, how many layers its own is below the head: 0 for the head's.
  std::map<std::string, int64_t> layers_below_head() const;

  /// Names of the parameters that a part of model.trainable stands for: `head`; `body`, all others; `norm`, those of
  /// the body's normalisation layers; `adapter`, those of adapters; or a name or pattern of the body's parameters, or
  /// of the first words of their names: "layer4", "blocks.1?", "*.bias".
  std::set<std::string> parameters_of(const std::string& part) const;

  /// All that parameters_of() takes, patterns apart.
  std::vector<std::string> names_of_parts() const;

  /// Trains these parts alone, see parameters_of(), and keeps everything else as it is. A module without trained
  /// parameters stays in evaluation mode whatever train() says: a batch norm keeps its statistics, and nothing is
  /// skipped at random.
  void train_only(const std::vector<std::string>& parts);
  void train(bool on = true) override;

  /// Gradient checkpointing, see Stage::recompute_activations().
  void recompute_activations();

  /// From now on the model answers in that form, by the weights as they are now. A prepared model cannot be trained:
  /// train() throws std::logic_error. kExact: it can again.
  void prepare(InferenceForm form);

  /// Whether weights and activations lie with their channels last. Values stay as they are; images of forward() should
  /// be laid out alike.
  void set_channels_last(bool on);

 private:
  InferenceForm form_ = InferenceForm::kExact;
  std::vector<std::shared_ptr<torch::nn::Module>> frozen_;  // modules that have parameters and train none
};

}  // namespace settrain
