#include "models/layer_norm.h"

#include <ATen/Context.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "models/cost.h"

namespace settrain {

LayerNorm::LayerNorm(int64_t features)
    : weight_(register_parameter("weight", at::ones(features, CostCounter::device()))),
      bias_(register_parameter("bias", at::zeros(features, CostCounter::device()))) {}

at::Tensor LayerNorm::forward(const at::Tensor& x) {
  constexpr double kEpsilon = 1e-6;
  if (x.is_meta()) return at::empty_like(x);
  return at::layer_norm(x, weight_.sizes(), weight_, bias_, kEpsilon, at::globalContext().userEnabledCuDNN());
}

at::Tensor ChannelNorm::forward(const at::Tensor& x) {
  return with_channels_second(LayerNorm::forward(with_channels_last(x)));
}

at::Tensor with_channels_last(const at::Tensor& x) {
  return x.permute({0, 2, 3, 1});
}

at::Tensor with_channels_second(const at::Tensor& x) {
  return x.permute({0, 3, 1, 2});
}

}  // namespace settrain
