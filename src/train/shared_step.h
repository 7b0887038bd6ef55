// The processes of a training within an optimizer step: who has which micro-batch, and sums over all of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "losses/loss.h"
#include "models/batch_statistics.h"
#include "src/parallel/gradient_sum.h"
#include "src/parallel/process_group.h"
#include "src/train/step_inputs.h"

namespace settrain {

/// A step goes in rounds, of one micro-batch for each process; a process alone takes its micro-batches one after the
/// other. All calls but release() are collective: every process makes the same ones in the same order.
class SharedStep {
 public:
  /// `bucket_bytes`: of the sums of several processes' gradients, see make_gradient_sum(). `sync_batch_norm`: whether
  /// batch norm goes over the batches of all processes.
  SharedStep(ProcessGroup& group, const Model& model, std::vector<at::Tensor> parameters,
             std::optional<int64_t> bucket_bytes, bool sync_batch_norm);

  /// The plan of a step for which every process has these batches.
  StepPlan plan(const Loss& loss, const std::vector<Batch>& batches, const StepNumber& number);

  /// Calls `work` for each micro-batch of this process, to compute its gradients and to fill its row of sums:
  /// [`columns`] float64 zeros on the device of the inputs' numbers.
  using Work = std::function<void(const MicroBatch& batch, const at::Tensor& row)>;
  void for_each_micro_batch(const StepInputs& inputs, int64_t columns, const Work& work);

  /// The rows of all micro-batches of all processes, [micro-batches, columns].
  at::Tensor gather_rows(const StepPlan& plan);

  /// The parameters' gradients become the sums over all processes, and the running statistics of batch norm follow all
  /// micro-batches in the order of their numbers.
  void sum_gradients(const StepPlan& plan);

  /// Forgets a step that was begun.
  void release();

  /// Has micro-batch `index` of StepPlan::all(), whose loss was not finite, computed again by `repeat`, which returns
  /// what is wrong with it, and throws that: NumericalError; in several processes AgreedError that names the process.
  /// Processes whose batches were normalised together compute theirs again, too.
  using Repeat = std::function<std::string(const MicroBatch& batch)>;
  [[noreturn]] void explain(const StepInputs& inputs, size_t index, const Repeat& repeat);

 private:
  bool is_normalised_together(const StepPlan::Round& round) const;
  // The rows of these micro-batches, where every process has in `rows` one for each of its rounds.
  at::Tensor gather(const std::vector<StepPlan::Entry>& entries, const at::Tensor& rows);

  ProcessGroup& group_;
  BatchStatistics statistics_;
  std::unique_ptr<GradientSum> gradients_;  // of several processes; null for one
  at::Tensor rows_;                         // [rounds, columns]
  std::vector<at::Tensor> recorded_;        // batch statistics of every round
};

}  // namespace settrain
