#include "models/convnext_block.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/zeros.h>

#include "models/biased_layers.h"
#include "models/cost.h"
#include "models/layer_norm.h"

namespace settrain {
namespace {

constexpr int64_t kKernel = 7, kHidden = 4;  // of the convolution; units of the perceptron a channel

std::shared_ptr<Layer> perceptron_layer(int64_t in, int64_t out) {
  return std::make_shared<LinearLayer>(normal_values({out, in}, kConvNextDeviation),
                                       at::zeros(out, CostCounter::device()));
}

}  // namespace

ConvNextBlock::ConvNextBlock(int64_t channels, double skipped)
    : skipped_(skipped),
      layer_scale_(register_parameter("layer_scale", at::full({channels, 1, 1}, 1e-6, CostCounter::device()))) {
  auto block = register_module("block", std::make_shared<torch::nn::Module>());
  convolution_ = block->register_module(
      "0", std::make_shared<BiasedConvolution>(normal_values({channels, 1, kKernel, kKernel}, kConvNextDeviation),
                                               ConvolutionGeometry{1, kKernel / 2, channels}));
  norm_ = block->register_module("2", std::make_shared<LayerNorm>(channels));
  widen_ = block->register_module("3", perceptron_layer(channels, kHidden * channels));
  narrow_ = block->register_module("5", perceptron_layer(kHidden * channels, channels));
}

at::Tensor ConvNextBlock::forward(const at::Tensor& x) {
  const at::Tensor pixels = norm_->forward(with_channels_last(convolution_->forward(x)));
  const at::Tensor branch = with_channels_second(narrow_->forward(at::gelu(widen_->forward(pixels))));
  const at::Tensor scaled = layer_scale_ * branch;
  return (is_training() ? randomly_skipped(scaled, skipped_) : scaled) + x;
}

at::Tensor randomly_skipped(const at::Tensor& x, double p) {
  if (p == 0 || x.is_meta()) return x;
  return x * at::empty({x.size(0), 1, 1, 1}, x.options()).bernoulli_(1 - p).div_(1 - p);
}

}  // namespace settrain
