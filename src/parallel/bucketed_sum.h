// Sums of gradients over processes, as fast as the backend adds them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "src/parallel/gradient_sum.h"

namespace torch::autograd {
struct Node;
}

namespace settrain {

/// Adds the gradients in buckets. A bucket is on its way as soon as the backward pass of the last round has reached all
/// of its parameters, while the pass goes on with the others: buckets are filled from the last parameters to the first
/// ones.
class BucketedSum final : public GradientSum {
 public:
  BucketedSum(ProcessGroup& group, std::vector<at::Tensor> parameters, int64_t bucket_bytes);
  BucketedSum(const BucketedSum&) = delete;  // the parameters' hooks refer to it
  BucketedSum& operator=(const BucketedSum&) = delete;
  ~BucketedSum() override;

  void start() override;
  void begin_round(bool is_last) override { is_last_ = is_last; }
  void end_round(const std::vector<int64_t>& contributors) override;
  void finish() override;

 private:
  struct Bucket {
    std::vector<at::Tensor> parameters;
    int64_t size = 0;
    int64_t missing = 0;  // parameters that the last backward pass has not reached yet
    at::Tensor flat;      // [size]
    std::function<void()> wait;
  };
  struct Hook {
    std::shared_ptr<torch::autograd::Node> node;
    uintptr_t key;
  };

  void reached(size_t bucket);
  void send(Bucket& bucket);

  ProcessGroup& group_;
  std::vector<Bucket> buckets_;
  std::vector<Hook> hooks_;
  bool is_last_ = false;  // the round
  size_t sent_ = 0;       // buckets, in their order, which is that of every process
};

}  // namespace settrain
