#include "src/parallel/gradient_sum.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <utility>

namespace settrain {
namespace {

using torch::autograd::variable_list;
using torch::autograd::utils::LambdaPostHook;

// The gradients of a step's micro-batches, g_0 + g_1 + ... in this order and rounding, as one process adds them that
// goes through the micro-batches one after the other. Each process adds one part of the parameters for all of them: as
// many bytes are sent as by a ring's allreduce in a step of one round, and half of that more for every further round.
class OrderedSum final : public GradientSum {
 public:
  OrderedSum(ProcessGroup& group, std::vector<at::Tensor> parameters)
      : group_(group), parameters_(std::move(parameters)) {
    for (const at::Tensor& parameter : parameters_) size_ += parameter.numel();
    size_ = (size_ + group.world_size() - 1) / group.world_size() * group.world_size();
  }

  void start() override { sum_ = at::Tensor(); }

  void begin_round(bool /*is_last*/) override {}

  void end_round(const std::vector<int64_t>& contributors) override {
    const c10::NoGradGuard no_grad;
    const at::Tensor flat = at::zeros({size_}, parameters_.at(0).options().requires_grad(false));
    int64_t place = 0;
    for (at::Tensor& parameter : parameters_) {
      at::Tensor& gradient = parameter.mutable_grad();
      if (gradient.defined()) flat.narrow(0, place, parameter.numel()).copy_(gradient.contiguous().view({-1}));
      gradient.reset();
      place += parameter.numel();
    }
    const at::Tensor parts = group_.all_to_all(flat);
    for (const int64_t i : contributors) {
      if (sum_.defined()) {
        sum_.add_(parts[i]);
      } else {
        sum_ = parts[i].clone();
      }
    }
  }

  void finish() override {
    const c10::NoGradGuard no_grad;
    const at::Tensor all = group_.all_gather(sum_).view({-1});
    int64_t place = 0;
    for (at::Tensor& parameter : parameters_) {
      const at::Tensor gradient = at::empty_like(parameter);
      gradient.copy_(all.narrow(0, place, parameter.numel()).view(parameter.sizes()));
      parameter.mutable_grad() = gradient;
      place += parameter.numel();
    }
  }

 private:
  ProcessGroup& group_;
  std::vector<at::Tensor> parameters_;
  int64_t size_ = 0;  // of all parameters, filled up to a multiple of the world's size
  at::Tensor sum_;    // [size / world] of this process' part; undefined before the first round
};

// Adds the gradients in buckets, as fast as the backend adds them. A bucket is on its way as soon as the backward pass
// of the last round has reached all of its parameters, while the pass goes on with the others: buckets are filled from
// the last parameters to the first ones.
class BucketedSum final : public GradientSum {
 public:
  BucketedSum(ProcessGroup& group, const std::vector<at::Tensor>& parameters, int64_t bucket_bytes) : group_(group) {
    for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter) {
      const auto bytes = static_cast<int64_t>(parameter->nbytes());
      if (buckets_.empty() || buckets_.back().size * parameter->element_size() + bytes > bucket_bytes) {
        buckets_.emplace_back();
      }
      buckets_.back().parameters.push_back(*parameter);
      buckets_.back().size += parameter->numel();
      auto node = torch::autograd::impl::grad_accumulator(*parameter);
      const auto hook = [this, bucket = buckets_.size() - 1](const variable_list& outputs, const variable_list&) {
        reached(bucket);
        return outputs;
      };
      hooks_.push_back({node, node->add_post_hook(std::make_unique<LambdaPostHook>(hook))});
    }
  }
  BucketedSum(const BucketedSum&) = delete;  // the parameters' hooks refer to it
  BucketedSum& operator=(const BucketedSum&) = delete;
  ~BucketedSum() override {
    for (const Hook& hook : hooks_) hook.node->del_post_hook(hook.key);
  }

  void start() override {
    is_last_ = false;
    sent_ = 0;
    for (Bucket& bucket : buckets_) bucket.missing = std::ssize(bucket.parameters);
  }

  void begin_round(bool is_last) override { is_last_ = is_last; }

  // Sends the buckets that are left where this process had no part in the last round, or not all parameters had
  // gradients. It cannot be later: the order of all collective calls is that of the other processes.
  void end_round(const std::vector<int64_t>& /*contributors*/) override {
    while (is_last_ && sent_ < buckets_.size()) send(buckets_[sent_++]);
  }

  void finish() override {
    const c10::NoGradGuard no_grad;
    for (Bucket& bucket : buckets_) {
      bucket.wait();
      int64_t place = 0;
      for (const at::Tensor& parameter : bucket.parameters) {
        at::Tensor& gradient = parameter.mutable_grad();
        if (!gradient.defined()) gradient = at::empty_like(parameter);
        gradient.copy_(bucket.flat.narrow(0, place, parameter.numel()).view(parameter.sizes()));
        place += parameter.numel();
      }
      bucket.flat.reset();
    }
  }

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

  void reached(size_t bucket) {
    if (!is_last_) return;
    --buckets_[bucket].missing;
    while (sent_ < buckets_.size() && buckets_[sent_].missing == 0) send(buckets_[sent_++]);
  }

  void send(Bucket& bucket) {
    const c10::NoGradGuard no_grad;
    bucket.flat = at::zeros({bucket.size}, bucket.parameters[0].options().requires_grad(false));
    int64_t place = 0;
    for (const at::Tensor& parameter : bucket.parameters) {
      if (parameter.grad().defined()) {
        bucket.flat.narrow(0, place, parameter.numel()).view(parameter.sizes()).copy_(parameter.grad());
      }
      place += parameter.numel();
    }
    bucket.wait = group_.start_all_reduce(bucket.flat);
  }

  ProcessGroup& group_;
  std::vector<Bucket> buckets_;
  std::vector<Hook> hooks_;
  bool is_last_ = false;  // the round
  size_t sent_ = 0;       // buckets, in their order, which is that of every process
};

}  // namespace

std::unique_ptr<GradientSum> make_gradient_sum(ProcessGroup& group, std::vector<at::Tensor> parameters,
                                               std::optional<int64_t> bucket_bytes) {
  if (!bucket_bytes) return std::make_unique<OrderedSum>(group, std::move(parameters));
  return std::make_unique<BucketedSum>(group, parameters, *bucket_bytes);
}

}  // namespace settrain
