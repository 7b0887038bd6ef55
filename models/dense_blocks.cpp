#include "models/dense_blocks.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>

namespace settrain {

DenseLayer::DenseLayer(int64_t in, int64_t growth, bool bottleneck, const DenseStyle& style)
    : norm1_(register_module(style.norm + "1", std::make_shared<BatchNorm>(in))) {
  const auto convolution = [&](int64_t from, int64_t to, int64_t kernel) {
    return std::make_shared<Convolution>(from, to, kernel, 1, style.fan);
  };
  if (!bottleneck) {
    conv1_ = register_module("conv1", convolution(in, growth, 3));
    return;
  }
  const int64_t inner = 4 * growth;
  conv1_ = register_module("conv1", convolution(in, inner, 1));
  norm2_ = register_module(style.norm + "2", std::make_shared<BatchNorm>(inner));
  conv2_ = register_module("conv2", convolution(inner, growth, 3));
}

at::Tensor DenseLayer::forward(const at::Tensor& x) {
  at::Tensor grown = conv1_->forward(rectified(norm1_->forward(x)));
  if (conv2_) grown = conv2_->forward(rectified(norm2_->forward(grown)));
  return at::cat({x, grown}, 1);
}

DenseTransition::DenseTransition(int64_t in, int64_t out, const std::string& norm, const std::string& conv, Fan fan)
    : norm_(register_module(norm, std::make_shared<BatchNorm>(in))),
      conv_(register_module(conv, std::make_shared<Convolution>(in, out, 1, 1, fan))) {}

at::Tensor DenseTransition::forward(const at::Tensor& x) {
  return at::avg_pool2d(conv_->forward(rectified(norm_->forward(x))), 2);
}

}  // namespace settrain
