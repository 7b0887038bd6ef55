#include "src/optim/optimizer.h"

#include <ATen/ops/zeros_like.h>

#include <algorithm>

namespace settrain {

void Optimizer::zero_grad() {
  for (TrainedParameter& parameter : parameters_) parameter.tensor.mutable_grad().reset();
}

std::vector<at::Tensor> Optimizer::parameters() const {
  std::vector<at::Tensor> tensors;
  for (const TrainedParameter& parameter : parameters_) tensors.push_back(parameter.tensor);
  return tensors;
}

std::vector<at::Tensor> Optimizer::Group::pick(const std::vector<at::Tensor>& all) const {
  std::vector<at::Tensor> picked;
  for (const size_t member : members) picked.push_back(all[member]);
  return picked;
}

std::vector<Optimizer::Group> Optimizer::groups() const {
  std::vector<Group> groups;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const TrainedParameter& parameter = parameters_[i];
    if (!parameter.tensor.grad().defined()) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& other) {
      return other.lr_factor == parameter.lr_factor && other.decays == parameter.decays;
    });
    if (group == groups.end()) group = groups.insert(group, {parameter.lr_factor, parameter.decays, {}, {}, {}});
    group->members.push_back(i);
    group->parameters.push_back(parameter.tensor);
    group->gradients.push_back(parameter.tensor.grad());
  }
  return groups;
}

at::Tensor Optimizer::lr_of(const Group& group, const at::Tensor& lr) {
  return group.lr_factor == 1 ? lr : lr.mul(group.lr_factor);
}

std::vector<at::Tensor> Optimizer::zeros() const {
  std::vector<at::Tensor> tensors;
  for (const TrainedParameter& parameter : parameters_) tensors.push_back(at::zeros_like(parameter.tensor));
  return tensors;
}

Optimizer::Named Optimizer::named(const std::string& kind, const std::vector<at::Tensor>& tensors) const {
  Named all;
  for (size_t i = 0; i < parameters_.size(); ++i) all.emplace_back(kind + "." + parameters_[i].name, tensors[i]);
  return all;
}

}  // namespace settrain
