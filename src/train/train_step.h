// The optimizer steps of a run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "losses/loss.h"
#include "models/batch_statistics.h"
#include "src/loader/loader.h"
#include "src/optim/optimizer.h"
#include "src/parallel/gradient_sum.h"
#include "src/parallel/process_group.h"
#include "src/train/computation.h"
#include "src/train/launched_step.h"
#include "src/train/mix.h"
#include "src/train/phase_timer.h"
#include "src/train/step_graph.h"
#include "src/train/step_inputs.h"
#include "src/train/step_metrics.h"
#include "src/train/step_plan.h"

namespace settrain {

class Model;

/// What the steps of a run have in common.
struct StepSettings {
  uint64_t seed = 0;                     // of the loss' noise and of dropout
  double clip_norm = 0;                  // 0: off
  const StepMetrics* metrics = nullptr;  // where given, what is measured besides loss and top-1
  const MixOptions* mix = nullptr;       // where given and on, images are mixed in pairs
  Capture capture = {};                  // unless empty, how the operations of a step are captured, see StepGraph
  // Of the sums of several processes' gradients, see make_gradient_sum(); empty: in order.
  std::optional<int64_t> bucket_bytes{};
  bool sync_batch_norm = false;  // whether batch norm goes over the batches of all processes
};

/// Forward, loss, backward and update. Nothing in a step waits for the device: its numbers are tensors.
class TrainStep {
 public:
  /// Refers to all of its arguments.
  TrainStep(Model& model, Loss& loss, Optimizer& optimizer, const Computation& computation, ProcessGroup& group,
            const StepSettings& settings);
  TrainStep(const TrainStep&) = delete;  // steps under way refer to it
  TrainStep& operator=(const TrainStep&) = delete;

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
  struct PartValue {
    LossInput input;
    LossValue value;
  };

  // The captured step, or the step itself. Where that lacks memory beside what the captured one keeps, as an epoch's
  // smaller last step may, the captured one is dropped and the step runs once more.
  at::Tensor run_with_graph(const StepInputs& inputs, const StepNumber& number);
  void seed_for(const StepPart& part, const StepNumber& number) const;
  // Forward and loss of one part.
  PartValue evaluate(const StepPart& part, const StepNumber& number, const at::Tensor& step);
  // The whole step on the device. Returns LaunchedStep's sums.
  at::Tensor compute(const StepInputs& inputs, const StepPlan& plan, const StepNumber& number, PhaseTimer& timer);
  // The backward pass of one part, and its row of compute()'s sums.
  void add_gradients(const StepPart& part, const StepInputs& inputs, const StepNumber& number, const at::Tensor& row,
                     PhaseTimer& timer);
  bool is_normalised_together(const StepPlan::Round& round) const;
  // The micro-batches whose statistics the running ones follow.
  std::vector<StepPlan::MicroBatch> with_own_statistics(const StepPlan& plan) const;
  // Those of the micro-batches, of what every process has in `rows`, one for each of its rounds.
  at::Tensor rows_of(const std::vector<StepPlan::MicroBatch>& micro_batches, const at::Tensor& rows);
  // Computes the part once more, since the parameters are still the same, and throws what is wrong with it. Collective:
  // what was normalised together is computed together.
  [[noreturn]] void explain(const StepInputs& inputs, const StepPlan& plan, const StepNumber& number, size_t part);

  Model& model_;
  Loss& loss_;
  Optimizer& optimizer_;
  const Computation& computation_;
  ProcessGroup& group_;
  StepSettings settings_;
  InputStream to_device_;
  at::Tensor stop_;  // [] float32: 1 once a loss was not finite, else 0
  BatchStatistics statistics_;
  std::unique_ptr<GradientSum> gradients_;  // of several processes; null for one
  StepNumber number_;
  StepPlan plan_;
  std::optional<StepGraph> graph_;
  bool updates_ = false;  // whether compute() has come to where it changes the model
};

}  // namespace settrain
