#include "models/small_resnet.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/relu.h>

#include <cmath>

#include "models/model_options.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

torch::nn::Conv2d convolution3x3(int64_t in, int64_t out, int64_t stride) {
  torch::nn::Conv2d convolution(torch::nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false));
  at::NoGradGuard no_grad;
  convolution->weight.normal_(0, std::sqrt(2.0 / static_cast<double>(out * 9)));
  return convolution;
}

class BasicBlock : public torch::nn::Module {
 public:
  BasicBlock(int64_t in, int64_t out, int64_t stride)
      : stride_(stride),
        extra_channels_(out - in),
        conv1_(register_module("conv1", convolution3x3(in, out, stride))),
        bn1_(register_module("bn1", torch::nn::BatchNorm2d(out))),
        conv2_(register_module("conv2", convolution3x3(out, out, 1))),
        bn2_(register_module("bn2", torch::nn::BatchNorm2d(out))) {}

  at::Tensor forward(const at::Tensor& x) {
    at::Tensor out = at::relu(bn1_(conv1_(x)));
    return at::relu(bn2_(conv2_(out)) + shortcut(x));
  }

 private:
  at::Tensor shortcut(const at::Tensor& x) const {
    at::Tensor kept = stride_ == 1 ? x : x.slice(2, 0, std::nullopt, stride_).slice(3, 0, std::nullopt, stride_);
    if (extra_channels_ == 0) return kept;
    const int64_t before = extra_channels_ / 2;
    return at::constant_pad_nd(kept, {0, 0, 0, 0, before, extra_channels_ - before});
  }

  int64_t stride_, extra_channels_;
  torch::nn::Conv2d conv1_;
  torch::nn::BatchNorm2d bn1_;
  torch::nn::Conv2d conv2_;
  torch::nn::BatchNorm2d bn2_;
};

torch::nn::Sequential stage(int64_t blocks, int64_t in, int64_t out, int64_t stride) {
  torch::nn::Sequential blocks_of_stage;
  for (int64_t block = 0; block < blocks; ++block) {
    blocks_of_stage->push_back(BasicBlock(block == 0 ? in : out, out, block == 0 ? stride : 1));
  }
  return blocks_of_stage;
}

}  // namespace

config::Keys SmallResNetOptions::keys() {
  return {config::key("width", &SmallResNetOptions::width, 16,
                      "Channels of the first stage; the second has twice, the third four times as many.")
              .at_least(1)
              .at_most(1024)
              .in("channels")};
}

SmallResNet::SmallResNet(int64_t depth, int64_t width, const std::string& head, const ModelContext& context)
    : channels_(context.channels),
      conv1_(register_module("conv1", convolution3x3(context.channels, width, 1))),
      bn1_(register_module("bn1", torch::nn::BatchNorm2d(width))),
      layer1_(register_module("layer1", stage((depth - 2) / 6, width, width, 1))),
      layer2_(register_module("layer2", stage((depth - 2) / 6, width, 2 * width, 2))),
      layer3_(register_module("layer3", stage((depth - 2) / 6, 2 * width, 4 * width, 2))),
      fc_(register_module("fc", make_head(head, 4 * width, context.num_classes))) {}

ModelOutput SmallResNet::forward(const at::Tensor& images) {
  check_shape("images", images.sizes(), {kAnySize, channels_, kAnySize, kAnySize});
  at::Tensor x = at::relu(bn1_(conv1_(images)));
  x = layer3_->forward(layer2_->forward(layer1_->forward(x)));
  ModelOutput output;
  output.features = x.mean(at::IntArrayRef{2, 3});
  output.scores = fc_->forward(output.features);
  return output;
}

}  // namespace settrain
