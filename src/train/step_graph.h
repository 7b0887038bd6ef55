// An optimizer step whose operations are captured once and replayed: train.graph.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "src/train/step_inputs.h"

namespace settrain {

/// Takes note of operations without running them, and returns a function that runs them all, as often as it is called.
using Capture = std::function<std::function<void()>(const std::function<void()>& operations)>;

/// Runs the operations, then `close`, even where the operations threw. Where `close` fails, runs each call of
/// `clean_up`, even where the one before it threw. Throws the first error: those after it are its consequences.
void close_after(const std::function<void()>& operations, const std::function<void()>& close,
                 const std::vector<std::function<void()>>& clean_up);

/// A Capture that makes CUDA graphs. It throws what the operations do, and c10::Error where one of them cannot
/// be captured. From now on this thread computes on that device, on a stream of its own, since the default one cannot
/// be captured. Empty where there is no GPU.
Capture cuda_graph_capture(at::Device device);

/// Whether both have as many parts with tensors of the same kinds, shapes and layouts, none of which has label sets.
bool are_alike(const StepInputs& a, const StepInputs& b);

/// Copies with tensors in memory of their own.
StepInputs cloned(const StepInputs& inputs);

/// Overwrites `to` with `from`, which is alike; the tensors of `to` stay where they are.
void copy_into(StepInputs& to, const StepInputs& from);

/// The operations of steps as a function of their inputs, captured anew in every epoch: losses depend on it. The first
/// steps of the process and of each epoch run as they are, since libraries and losses set themselves up in their first
/// calls; so do steps whose inputs are of other shapes than those of the step before the capture.
class StepGraph {
 public:
  /// Returns a tensor of results. It reads nothing that changes but its inputs, and tensors that stay where they are.
  using Operations = std::function<at::Tensor(const StepInputs& inputs)>;

  StepGraph(Capture capture, Operations operations);

  /// The results of the operations on `inputs`, in memory that the next call writes anew. A step that cannot be
  /// captured runs as it is, as all after it, which is said once.
  at::Tensor operator()(const StepInputs& inputs, int64_t epoch);

  /// Whether operations are captured, which keep the memory of their activations.
  bool is_captured() const { return captured_ != nullptr; }

  /// Gives back the memory that the captured operations keep.
  void drop();

 private:
  struct Captured {
    StepInputs inputs;  // which the replay reads
    at::Tensor results;
    std::function<void()> replay;
  };

  // Null where it cannot be captured.
  std::unique_ptr<Captured> captured(const StepInputs& inputs);

  Capture capture_;  // empty once it failed
  Operations operations_;
  int64_t steps_before_ = 0;
  std::optional<StepInputs> last_;  // of the epoch's last step that ran as it is; none at its start
  int64_t epoch_ = -1;
  std::unique_ptr<Captured> captured_;
};

}  // namespace settrain
