// Gradients of a step, added over its micro-batches and processes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "src/parallel/process_group.h"

namespace settrain {

/// A round is a micro-batch for every process; the last one of a step may lack some. The calls of a step: start(); of
/// each round begin_round(), this process' backward pass if it has one, end_round(); then finish(). Every process makes
/// them, with its other collective calls at the same places between them.
class GradientSum {
 public:
  virtual ~GradientSum() = default;

  /// Forgets what was added. The gradients are undefined or zero.
  virtual void start() = 0;

  virtual void begin_round(bool is_last) = 0;

  /// The backward passes of a round are done, in the processes `contributors`, in the order of their ranks. Collective.
  virtual void end_round(const std::vector<int64_t>& contributors) = 0;

  /// The parameters' gradients become the sums; those of parameters that had none become zeros. Collective.
  virtual void finish() = 0;
};

/// How a training adds gradients. `bucket_bytes`: in buckets of that size, as the backend adds them, while the backward
/// pass goes on; empty: so that the sums do not depend on the number of processes. `parameters`: the same ones in the
/// same order in every process, all of one dtype.
std::unique_ptr<GradientSum> make_gradient_sum(ProcessGroup& group, std::vector<at::Tensor> parameters,
                                               std::optional<int64_t> bucket_bytes);

}  // namespace settrain
