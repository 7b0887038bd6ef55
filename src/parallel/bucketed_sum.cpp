#include "src/parallel/bucketed_sum.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace settrain {
namespace {

using torch::autograd::variable_list;
using torch::autograd::utils::LambdaPostHook;

}  // namespace

BucketedSum::BucketedSum(ProcessGroup& group, std::vector<at::Tensor> parameters, int64_t bucket_bytes)
    : group_(group) {
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

BucketedSum::~BucketedSum() {
  for (const Hook& hook : hooks_) hook.node->del_post_hook(hook.key);
}

void BucketedSum::start() {
  is_last_ = false;
  sent_ = 0;
  for (Bucket& bucket : buckets_) bucket.missing = std::ssize(bucket.parameters);
}

void BucketedSum::reached(size_t bucket) {
  if (!is_last_) return;
  --buckets_[bucket].missing;
  while (sent_ < buckets_.size() && buckets_[sent_].missing == 0) send(buckets_[sent_++]);
}

void BucketedSum::send(Bucket& bucket) {
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

// Where this process had no part in the last round, or not all parameters had gradients. Not later: the order of all
// collective calls is that of the other processes.
void BucketedSum::end_round(const std::vector<int64_t>& /*contributors*/) {
  while (is_last_ && sent_ < buckets_.size()) send(buckets_[sent_++]);
}

void BucketedSum::finish() {
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

}  // namespace settrain
