#include "models/biased_layers.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include "models/cost.h"

namespace settrain {

at::Tensor normal_values(at::IntArrayRef sizes, double deviation) {
  return at::empty(sizes, CostCounter::device()).normal_(0, deviation);
}

at::Tensor uniform_values(at::IntArrayRef sizes, double bound) {
  return at::empty(sizes, CostCounter::device()).uniform_(-bound, bound);
}

at::Tensor linear_map(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (x.is_meta()) CostCounter::add(x.numel() * weight.size(0));
  return at::linear(x, weight, bias);
}

BiasedConvolution::BiasedConvolution(const at::Tensor& weight, const ConvolutionGeometry& geometry)
    : geometry_(geometry),
      weight_(register_parameter("weight", weight)),
      bias_(register_parameter("bias", at::zeros({weight.size(0)}, weight.options()))) {}

at::Tensor BiasedConvolution::forward(const at::Tensor& x) {
  return convolved(x, weight_, bias_, geometry_);
}

LinearLayer::LinearLayer(const at::Tensor& weight, const at::Tensor& bias)
    : weight_(register_parameter("weight", weight)), bias_(register_parameter("bias", bias)) {}

at::Tensor LinearLayer::forward(const at::Tensor& x) {
  return linear_map(x, weight_, bias_);
}

}  // namespace settrain
