// What a loss is to the rest of the program.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "losses/class_weights.h"
#include "losses/label_sets.h"
#include "models/model_output.h"
#include "src/config/config.h"
#include "src/core/noise_key.h"
#include "src/core/registry.h"

namespace settrain {

/// How a loss is computed that has kernels of its own (LossEntry::has_kernels).
enum class LossMethod {
  kFast,      // by its kernels, for the scores that they take
  kUnpruned,  // likewise, but noise is drawn for every class; the results are the same to the last bit
  kPlain,     // by LibTorch's operations alone, the formula as it reads: what the kernels are measured against
};

/// One batch, as a loss sees it.
struct LossInput {
  ModelOutput output;
  at::Tensor labels;      // [batch] int64 in [0, classes)
  LabelSets label_sets;   // all labels of every sample where the data give several; else undefined
  at::Tensor sample_ids;  // [batch] int64 on the CPU, the training samples' ids
  int64_t epoch = 0;      // from 0
  NoiseKey noise_key;     // seed, step and position: all that a loss' random numbers may depend on

  // For tests and benchmarks, instead of what the loss would take itself:
  LossMethod method = LossMethod::kFast;
  std::optional<at::Tensor> noise;            // [batch, draws, classes] random numbers
  std::optional<at::Tensor> estimate_logits;  // [batch, classes] a loss' own estimates of the samples' labels
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
  std::vector<int64_t> train_ids;     // [training samples] their ids, as in LossInput::sample_ids
  std::vector<int64_t> train_labels;  // [training samples] label noise included
  uint64_t seed = 0;                  // of random initial values
};

/// What a loss needs of the rest of a run. A config that lacks it is refused with the fix.
struct LossRequirements {
  bool normalised_head = false;  // scores are cosines
  bool two_heads = false;        // ModelOutput::scores_multi
  bool class_counts = false;     // LossContext::class_counts
  bool sample_ids = false;       // LossInput::sample_ids, of the samples in LossContext::train_ids
};

/// Base of every loss.
class Loss {
 public:
  virtual ~Loss() = default;

  /// Checks shapes, dtypes and labels (ShapeError; on CUDA the indexing kernels check the labels' range, since reading
  /// them back would stall every step), casts half-precision scores to float32, and computes. Scores are float32 or
  /// float64 inside; gradients flow to them.
  LossValue operator()(const LossInput& input);

  /// Multiplies the losses of every sample by its label's weight from now on.
  void reweight(ClassWeights weights) { class_weights_ = std::move(weights); }

  /// The factor that turns this loss' scores into logits for a softmax: its scale where it trains a normalised head,
  /// else 1.
  virtual double score_scale() const { return 1.0; }

  /// Tensors a loss owns and updates, by name: saved in checkpoints. Most losses have none.
  virtual std::vector<std::pair<std::string, at::Tensor>> state() { return {}; }

  /// Moves those tensors, by the gradients that have reached them since the last call. Called after every optimizer
  /// step with its learning rate.
  virtual void update(double /*lr*/) {}

 protected:
  /// [batch] losses of checked input.
  virtual at::Tensor per_sample(const LossInput& input) = 0;

  explicit Loss(int64_t num_classes) : num_classes_(num_classes) {}
  int64_t num_classes() const { return num_classes_; }

 private:
  int64_t num_classes_;
  std::optional<ClassWeights> class_weights_;
};

/// `keys` are the keys of the section `loss` that only this loss has.
struct LossEntry {
  std::string name;
  std::string help;
  std::string formula;  // of a sample's loss; s: scores, y: the label, L: classes
  config::Keys keys;
  LossRequirements requirements;
  std::function<std::unique_ptr<Loss>(const config::Config&, const LossContext&)> make;
  std::string stall_advice = {};  // what to try where training hardly moves the loss; a sentence
  bool couples_samples = false;   // a sample's loss depends on the rest of its batch
  bool has_gradient = true;       // where false, it trains nothing
  bool has_kernels = false;       // LossInput::method makes a difference to its speed
  bool takes_label_sets = false;  // reads LossInput::label_sets; one label is a set of one
};

using LossRegistry = Registry<LossEntry>;

/// Adds every loss of this folder.
void register_builtin_losses(LossRegistry& registry);

}  // namespace settrain
