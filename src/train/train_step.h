// An optimizer step: forward, loss, backward, clip and update.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "losses/loss.h"
#include "src/loader/loader.h"
#include "src/optim/optimizer.h"
#include "src/train/compute_policy.h"
#include "src/train/mix.h"
#include "src/train/shared_step.h"
#include "src/train/step_graph.h"
#include "src/train/step_result.h"

namespace settrain {

class Model;

/// Settings that all steps of a run share.
struct StepSettings {
  uint64_t seed = 0;                      // of the loss' noise and of dropout
  double clip_norm = 0;                   // 0: off
  StepMetrics metrics{};                  // measured besides loss and top-1
  MixOptions mix{};                       // whether images are mixed in pairs, and how
  Capture capture{};                      // unless empty, how the operations of a step are captured, see StepGraph
  std::optional<int64_t> bucket_bytes{};  // see SharedStep
  bool sync_batch_norm = false;           // see SharedStep
};

/// Nothing in a step waits for the device: its numbers are tensors.
class TrainStep {
 public:
  /// Refers to all of its arguments but the settings.
  TrainStep(Model& model, Loss& loss, Optimizer& optimizer, const ComputePolicy& policy, ProcessGroup& group,
            StepSettings settings);
  TrainStep(const TrainStep&) = delete;  // steps under way refer to it
  TrainStep& operator=(const TrainStep&) = delete;

  const StepMetrics& metrics() const { return settings_.metrics; }

  /// A step over `batches`, whose gradients are added up: the mean loss is taken over all their samples, or their
  /// weights (see Loss::divisor()); without any sample nothing is done. The batches are moved to the model's device one
  /// after the other. With `phases` the device is waited for, and the step's times are added.
  ///
  /// Where the loss is not finite, neither this step nor any after it changes the parameters or the loss' own tensors,
  /// and the step's result() throws a NumericalError that names the step, the samples, the learning rate, the largest
  /// |score| and the first tensor that is not finite; in several processes an AgreedError that names the process too.
  LaunchedStep launch(const std::vector<Batch>& batches, const StepNumber& number, StepPhases* phases = nullptr);

  /// Gives back memory that only steps need, before an evaluation.
  void end_epoch();

 private:
  // The whole step on the device. Returns LaunchedStep's sums.
  at::Tensor compute(const StepInputs& inputs, PhaseTimer& timer);
  // Computes forward and loss of a micro-batch once more, while the parameters are still the same. Returns the message
  // for its loss, which is not finite.
  std::string compute_again(const StepInputs& inputs, const MicroBatch& batch);
  // The captured step, or the step itself. Where that lacks memory beside what the captured one keeps, as an epoch's
  // smaller last step may, the captured one is dropped and the step runs once more.
  at::Tensor run_with_graph(const StepInputs& inputs);
  void seed_for(const MicroBatch& batch, const StepNumber& number) const;
  // The images of a batch, mixed where train.mix asks for it, and the loss' input but for the model's output. `step`:
  // StepInputs::step(), which kernels read while the step is computed.
  std::pair<MixedBatch, LossInput> prepare(const MicroBatch& batch, const StepNumber& number,
                                           const at::Tensor& step) const;

  Model& model_;
  Loss& loss_;
  Optimizer& optimizer_;
  const ComputePolicy& policy_;
  StepSettings settings_;
  InputStream to_device_;
  SharedStep shared_;
  at::Tensor stop_;  // [] float32: 1 once a loss was not finite, else 0
  std::optional<StepGraph> graph_;
  bool has_begun_update_ = false;  // whether compute() has begun to change the model
};

}  // namespace settrain
