// What a loss is to the rest of the program.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/model_output.h"
#include "src/config/config.h"
#include "src/core/noise_key.h"
#include "src/core/registry.h"

namespace settrain {

/// One batch, as a loss sees it.
struct LossInput {
  ModelOutput output;
  at::Tensor labels;                // [batch] int64 in [0, classes)
  at::Tensor sample_ids;            // [batch] int64, the training samples' ids
  NoiseKey noise_key;               // seed, step and position: all that a loss' random numbers may depend on
  std::optional<at::Tensor> noise;  // [batch, draws, classes]: used instead of random numbers, for tests
};

/// A loss over a batch: (per sample, sum, count), so that means over uneven batches come out right.
struct LossValue {
  at::Tensor per_sample;  // [batch] float
  at::Tensor sum;         // [] float, with a gradient
  int64_t count = 0;

  at::Tensor mean() const;
};

/// What a loss is built for.
struct LossContext {
  int64_t num_classes;
  std::vector<int64_t> class_counts;  // [classes] training labels of every class, label noise included
  int64_t num_train;                  // training samples
};

/// What a loss needs of the rest of a run. A config that lacks it is refused with the fix.
struct LossRequirements {
  bool normalised_head = false;  // scores are cosines
  bool two_heads = false;        // ModelOutput::scores_multi
};

/// Base of every loss.
class Loss {
 public:
  virtual ~Loss() = default;

  /// Checks shapes, dtypes and labels (ShapeError; on CUDA the indexing kernels check the labels' range, since reading
  /// them back would stall every step), casts half-precision scores to float32, and computes. Scores are float32 or
  /// float64 inside; gradients flow to them.
  LossValue operator()(const LossInput& input);

  /// The factor that turns this loss' scores into logits for a softmax: its scale where it trains a normalised head,
  /// else 1.
  virtual double score_scale() const { return 1.0; }

  /// Tensors a loss owns and updates, by name: saved in checkpoints. Most losses have none.
  virtual std::vector<std::pair<std::string, at::Tensor>> state() { return {}; }

 protected:
  /// [batch] losses of checked input.
  virtual at::Tensor per_sample(const LossInput& input) = 0;

  explicit Loss(int64_t num_classes) : num_classes_(num_classes) {}
  int64_t num_classes() const { return num_classes_; }

 private:
  int64_t num_classes_;
};

/// `keys` are the keys of the section `loss` that only this loss has.
struct LossEntry {
  std::string name;
  std::string help;
  config::Keys keys;
  LossRequirements requirements;
  std::function<std::unique_ptr<Loss>(const config::Config&, const LossContext&)> make;
  std::string stall_advice = {};  // what to try where training hardly moves the loss; a sentence
};

using LossRegistry = Registry<LossEntry>;

/// Adds every loss of this folder.
void register_builtin_losses(LossRegistry& registry);

}  // namespace settrain
