// Sums of gradients over processes, added in one order whoever holds them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "src/parallel/gradient_sum.h"

namespace settrain {

/// The gradients of a step's micro-batches, g_0 + g_1 + ... in this order and rounding, as one process adds them that
/// goes through the micro-batches one after the other. Each process adds one part of the parameters for all of them: as
/// many bytes are sent as by a ring's allreduce in a step of one round, and half of that more for every further round.
class OrderedSum final : public GradientSum {
 public:
  OrderedSum(ProcessGroup& group, std::vector<at::Tensor> parameters);

  void start() override;
  void begin_round(bool /*is_last*/) override {}
  void end_round(const std::vector<int64_t>& contributors) override;
  void finish() override;

 private:
  ProcessGroup& group_;
  std::vector<at::Tensor> parameters_;
  int64_t size_ = 0;  // of all parameters, filled up to a multiple of the world's size
  at::Tensor sum_;    // [size / world] of this process' part; undefined before the first round
};

}  // namespace settrain
