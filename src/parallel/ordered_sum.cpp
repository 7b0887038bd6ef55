#include "src/parallel/ordered_sum.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <utility>

namespace settrain {

OrderedSum::OrderedSum(ProcessGroup& group, std::vector<at::Tensor> parameters)
    : group_(group), parameters_(std::move(parameters)) {
  for (const at::Tensor& parameter : parameters_) size_ += parameter.numel();
  size_ = (size_ + group.world_size() - 1) / group.world_size() * group.world_size();
}

void OrderedSum::start() {
  sum_ = at::Tensor();
}

void OrderedSum::end_round(const std::vector<int64_t>& contributors) {
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

void OrderedSum::finish() {
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

}  // namespace settrain
