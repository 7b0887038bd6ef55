#include "src/optim/weight_average.h"

#include <ATen/ops/_foreach_lerp.h>
#include <c10/core/GradMode.h>

#include <algorithm>

namespace settrain {

WeightAverage::WeightAverage(Named weights, double decay, bool warmup)
    : weights_(std::move(weights)), decay_(decay), warmup_(warmup) {
  for (const auto& [name, tensor] : weights_) average_.emplace_back(name, tensor.detach().clone());
}

void WeightAverage::update(int64_t step) {
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> averages, weights;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i].second.is_floating_point()) {
      averages.push_back(average_[i].second);
      weights.push_back(weights_[i].second);
    } else {
      average_[i].second.copy_(weights_[i].second);
    }
  }
  const auto t = static_cast<double>(step + 1);
  at::_foreach_lerp_(averages, weights, 1 - (warmup_ ? std::min(decay_, (1 + t) / (10 + t)) : decay_));
}

void WeightAverage::exchange() {
  for (size_t i = 0; i < weights_.size(); ++i) {
    // The memory changes hands: nothing is copied, so nothing can fail.
    const at::Tensor weight = weights_[i].second.detach();
    weights_[i].second.set_data(average_[i].second);
    average_[i].second = weight;
  }
}

}  // namespace settrain
