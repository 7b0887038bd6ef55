// All that the operations of an optimizer step read: its micro-batches and numbers, on the device.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "losses/loss.h"
#include "losses/ops/loss_input.h"
#include "src/loader/loader.h"

namespace settrain {

/// The numbers of one step that are known before it.
struct StepNumber {
  int64_t step = 0;           // global optimizer step, from 0
  double lr = 0;              // learning rate
  int64_t epoch = 0;          // from 0
  int64_t micro_batches = 0;  // of the whole step, in all processes
  double lr_factor = 1;       // the schedule's, within the learning rate
};

/// The micro-batches of a step, and which process has which. Micro-batch a W + r is batch a of process r, where W
/// processes have A batches each: a step is the same row of micro-batches for every W with the same product A W. Its
/// last round may lack some.
struct StepPlan {
  struct Entry {
    int64_t number = 0;          // of the micro-batch in the step
    int64_t first_position = 0;  // of its first sample within the step
  };
  using Round = std::vector<Entry>;  // at most one of each process

  int64_t samples = 0;          // of the whole step
  double divisor = 0;           // of the sum of their losses, at least that of one sample
  std::vector<Round> rounds{};  // the micro-batches with samples, in the order of their numbers
  std::vector<Entry> own{};     // those of this process

  /// The entries of all rounds.
  std::vector<Entry> all() const;
};

/// One of the batches of a step, which has samples.
struct MicroBatch {
  at::Tensor images;     // as in Batch, on the device
  LossInput loss_input;  // labels, label sets, sample ids, epoch and noise key: all but the model's output
  int64_t number = 0;    // in the step
};

struct StepInputs {
  std::vector<MicroBatch> parts;  // of this process
  at::Tensor numbers;             // [3] float64: learning rate, divisor of the losses' sum, step
  StepNumber number{};
  StepPlan plan{};

  /// The learning rate as optimizers take it, see Optimizer::step().
  at::Tensor lr() const { return numbers.is_cpu() ? numbers[0] : numbers[0].to(at::kFloat); }
  at::Tensor divisor() const { return numbers[1]; }
  /// [] int64 on a GPU, whose kernels read it there; undefined on the CPU.
  at::Tensor step() const { return numbers.is_cpu() ? at::Tensor() : numbers[2].to(at::kLong); }
};

/// Brings batches to a device. A GPU copies them on a stream of its own, while the step before computes.
class InputStream {
 public:
  /// `seed`: of the loss' noise.
  explicit InputStream(at::Device device, uint64_t seed = 0);

  /// The inputs of this process, with its batches that have samples. Operations that follow on the current stream find
  /// them there. Does not wait for the device.
  StepInputs operator()(const std::vector<Batch>& batches, const StepNumber& number, StepPlan plan) const;

 private:
  at::Tensor here(const at::Tensor& tensor) const;

  at::Device device_;
  uint64_t seed_;
  std::optional<c10::Stream> stream_;  // of a GPU
};

}  // namespace settrain
