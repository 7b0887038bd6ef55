#include "models/residual_blocks.h"

#include <ATen/ops/constant_pad_nd.h>

namespace settrain {
namespace {

std::shared_ptr<Layer> projection(int64_t in, int64_t out, int64_t stride) {
  auto layers = std::make_shared<Stage>();
  layers->add("0", std::make_shared<Convolution>(in, out, 1, stride));
  layers->add("1", std::make_shared<BatchNorm>(out));
  return layers;
}

}  // namespace

BasicBlock::BasicBlock(int64_t in, int64_t out, int64_t stride, Shortcut shortcut)
    : stride_(stride),
      padded_channels_(shortcut == Shortcut::kPad ? out - in : 0),
      conv1_(register_module("conv1", std::make_shared<Convolution>(in, out, 3, stride))),
      bn1_(register_module("bn1", std::make_shared<BatchNorm>(out))),
      conv2_(register_module("conv2", std::make_shared<Convolution>(out, out, 3))),
      bn2_(register_module("bn2", std::make_shared<BatchNorm>(out))) {
  const bool same = in == out && stride == 1;
  if (shortcut == Shortcut::kProject && !same) downsample_ = register_module("downsample", projection(in, out, stride));
}

at::Tensor BasicBlock::forward(const at::Tensor& x) {
  const at::Tensor y = rectified(bn1_->forward(conv1_->forward(x)));
  return rectified(bn2_->forward(conv2_->forward(y)).add_(shortcut(x)));
}

at::Tensor BasicBlock::shortcut(const at::Tensor& x) const {
  if (downsample_) return downsample_->forward(x);
  const at::Tensor kept = stride_ == 1 ? x : x.slice(2, 0, std::nullopt, stride_).slice(3, 0, std::nullopt, stride_);
  if (padded_channels_ == 0) return kept;
  const int64_t before = padded_channels_ / 2;
  return at::constant_pad_nd(kept, {0, 0, 0, 0, before, padded_channels_ - before});
}

BottleneckBlock::BottleneckBlock(int64_t in, int64_t inner, int64_t out, int64_t stride, int64_t groups)
    : conv1_(register_module("conv1", std::make_shared<Convolution>(in, inner, 1))),
      bn1_(register_module("bn1", std::make_shared<BatchNorm>(inner))),
      conv2_(register_module("conv2", std::make_shared<Convolution>(inner, inner, 3, stride, Fan::kOut, groups))),
      bn2_(register_module("bn2", std::make_shared<BatchNorm>(inner))),
      conv3_(register_module("conv3", std::make_shared<Convolution>(inner, out, 1))),
      bn3_(register_module("bn3", std::make_shared<BatchNorm>(out))) {
  if (in != out || stride != 1) downsample_ = register_module("downsample", projection(in, out, stride));
}

at::Tensor BottleneckBlock::forward(const at::Tensor& x) {
  at::Tensor y = rectified(bn1_->forward(conv1_->forward(x)));
  y = rectified(bn2_->forward(conv2_->forward(y)));
  return rectified(bn3_->forward(conv3_->forward(y)).add_(downsample_ ? downsample_->forward(x) : x));
}

}  // namespace settrain
