// The interface of a loss, and its entry in the registry.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "losses/ops/class_weights.h"
#include "losses/ops/loss_input.h"
#include "src/config/config.h"
#include "src/config/schema.h"
#include "src/core/registry.h"

namespace settrain {

/// A loss over a batch: (per sample, sum, count), so that means over uneven batches come out right.
struct LossValue {
  at::Tensor per_sample;  // [batch] float
  at::Tensor sum;         // [] float, with a gradient
  int64_t count = 0;

  at::Tensor mean() const { return sum.div(static_cast<double>(count)); }
};

/// Requirements on the rest of a run. A config that does not meet them is refused with the fix.
struct LossRequirements {
  bool normalised_head = false;  // scores are cosines
  bool two_heads = false;        // ModelOutput::scores_multi
  bool class_counts = false;     // LossContext::class_counts
  bool sample_ids = false;       // LossInput::sample_ids, of the samples in LossContext::train_ids
};

/// Base of every loss.
class Loss {
 public:
  /// The constructor of every loss takes the config, whose section `loss` has its keys, and the training data.
  Loss(const config::Config& /*config*/, const LossContext& context) : num_classes_(context.num_classes) {}
  virtual ~Loss() = default;

  /// Checks shapes, dtypes, labels and given noise (ShapeError), casts half-precision scores to float32, and computes.
  /// With label shares p it is the expected loss, sum_j p_j (the loss of label j).
  /// On CUDA a label out of range is not found beforehand, since reading labels back would stall every step: LibTorch's
  /// indexing asserts there, and our kernels answer NaN for the sample. Scores are float32 or float64 inside; they get
  /// gradients.
  LossValue operator()(const LossInput& input);

  /// Multiplies the losses of every sample by its label's weight from now on.
  void reweight(ClassWeights weights) { class_weights_ = std::move(weights); }

  /// The divisor of the summed losses of a step's samples, given their labels, [batch] int64 on the CPU: their number,
  /// or with loss.class_weight_mean: weights the sum of their weights.
  double divisor(const at::Tensor& labels, int64_t epoch) const;

  /// The factor that turns this loss' scores into logits for a softmax: its scale where it trains a normalised head,
  /// else 1.
  virtual double score_scale() const { return 1.0; }

  /// Tensors a loss owns and updates, by name: saved in checkpoints. Most losses have none.
  virtual std::vector<std::pair<std::string, at::Tensor>> state() { return {}; }

  /// Moves these tensors by the gradients that have reached them since the last call. Called after every optimizer step
  /// with its learning rate; `schedule_factor`: the schedule's factor within it.
  virtual void update(double /*lr*/, double /*schedule_factor*/) {}

 protected:
  /// [batch] losses of checked input.
  virtual at::Tensor per_sample(const LossInput& input) = 0;

  /// [batch, classes] the losses of checked input for each class as the label, where it has a share of
  /// input.label_shares; any number elsewhere. For losses with LossEntry::takes_mixed_labels; the others throw
  /// ShapeError.
  virtual at::Tensor every_label(const LossInput& input);

  int64_t num_classes() const { return num_classes_; }

 private:
  int64_t num_classes_;
  std::optional<ClassWeights> class_weights_;
};

/// For LossEntry::make.
template <class L>
std::unique_ptr<Loss> construct(const config::Config& config, const LossContext& context) {
  return std::make_unique<L>(config, context);
}

/// A loss in the registry, by the name that a config gives in loss.name.
struct LossEntry {
  std::string name;
  std::string help;
  std::string formula;     // of a sample's loss; s: scores, y: the label, L: classes
  config::Keys keys = {};  // keys of the section `loss` that only this loss has
  LossRequirements requirements = {};
  std::function<std::unique_ptr<Loss>(const config::Config&, const LossContext&)> make;
  config::Rule rule = {};           // on its keys, where it has one
  std::string stall_advice = {};    // a sentence: what to try where training hardly moves the loss
  bool couples_samples = false;     // a sample's loss depends on the rest of its batch
  bool has_gradient = true;         // where false, it trains nothing
  bool has_kernels = false;         // LossInput::method makes a difference to its speed
  bool takes_label_sets = false;    // reads LossInput::label_sets; one label is a set of one
  bool corrects_prior = false;      // allows for the classes' numbers of images as a sampler or class weights do
  bool takes_mixed_labels = false;  // a loss of probabilities, whose mean over several labels every_label() gives
  bool has_sigmoids = false;        // the sigmoid of a score is its class' probability; else their softmax
  // tau, where the loss takes softmax(s + tau log pi) for P(y | x), pi being the classes' shares of the training
  // images. Nothing where it estimates no P(y | x), or tau changes by epoch.
  std::optional<double> (*prior_tau)(const config::Config&) = nullptr;
};

using LossRegistry = Registry<LossEntry>;

/// Adds every loss of this folder.
void register_builtin_losses(LossRegistry& registry);

}  // namespace settrain
