// What the operations of an optimizer step read, on the device.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "losses/ops/loss_input.h"
#include "src/loader/loader.h"

namespace settrain {

/// The numbers of one step that are known before it.
struct StepNumber {
  int64_t step = 0;           // global optimizer step, from 0
  double lr = 0;              // learning rate
  int64_t epoch = 0;          // from 0
  int64_t micro_batches = 0;  // of the whole step, in all processes
};

/// One of the batches of a step, which has samples.
struct StepPart {
  at::Tensor images, labels;   // as in Batch, on the device
  LabelSets label_sets;        // the same
  at::Tensor sample_ids;       // as in Batch, on the CPU
  int64_t micro_batch = 0;     // its number in the step
  int64_t first_position = 0;  // of its first sample within the step
};

struct StepInputs {
  std::vector<StepPart> parts;
  at::Tensor numbers;  // [3] float64: the learning rate, what the losses' sum is divided by, and the step

  /// The learning rate as optimizers take it, see Optimizer::step().
  at::Tensor lr() const;
  at::Tensor divisor() const { return numbers[1]; }
  /// [] int64
  at::Tensor step() const;
};

/// Whether both have as many parts with tensors of the same kinds, shapes and layouts, none of which has label sets.
bool alike(const StepInputs& a, const StepInputs& b);

/// Copies the tensors of `from` into those of `to`, which are alike.
void copy_into(const StepInputs& to, const StepInputs& from);

/// Copies of them all, in memory of their own.
StepInputs cloned(const StepInputs& inputs);

/// Brings batches to a device. A GPU copies them on a stream of its own, while the step before computes.
class InputStream {
 public:
  explicit InputStream(at::Device device);

  /// The batches that have samples. What follows on the current stream finds them there. Does not wait for the device.
  StepInputs operator()(const std::vector<Batch>& batches, const StepNumber& number, double divisor) const;

 private:
  at::Tensor here(const at::Tensor& tensor) const;

  at::Device device_;
  std::optional<c10::Stream> stream_;  // of a GPU
};

}  // namespace settrain
