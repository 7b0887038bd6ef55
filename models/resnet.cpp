#include "models/resnet.h"

#include <ATen/ops/max_pool2d.h>

#include <map>
#include <string>

#include "models/residual_blocks.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

constexpr int64_t kExpansion = 4;  // of a bottleneck's channels at its end

std::shared_ptr<Stage> make_resnet_stage(const ResNetShape& shape, int64_t blocks, int64_t width, int64_t& channels,
                                         int64_t stride) {
  auto stage = std::make_shared<Stage>();
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t out = shape.bottleneck ? kExpansion * width : width;
    const int64_t stride_here = b == 0 ? stride : 1;
    std::shared_ptr<Layer> block;
    if (shape.bottleneck) {
      block = std::make_shared<BottleneckBlock>(channels, shape.widening * width, out, stride_here, shape.groups);
    } else {
      block = std::make_shared<BasicBlock>(channels, out, stride_here, Shortcut::kProject);
    }
    stage->add(std::to_string(b), std::move(block));
    channels = out;
  }
  return stage;
}

}  // namespace

ResNetShape resnet_shape(int64_t depth) {
  static const std::map<int64_t, ResNetShape> shapes{{18, {{2, 2, 2, 2}, false}},
                                                     {34, {{3, 4, 6, 3}, false}},
                                                     {50, {{3, 4, 6, 3}, true}},
                                                     {101, {{3, 4, 23, 3}, true}},
                                                     {152, {{3, 8, 36, 3}, true}}};
  return shapes.at(depth);
}

ResNet::ResNet(const ResNetShape& shape, const ModelOptions& options, const ModelContext& context)
    : channels_(context.channels) {
  int64_t channels = 64, width = 64;
  conv1_ = register_module("conv1", std::make_shared<Convolution>(context.channels, channels, 7, 2));
  bn1_ = register_module("bn1", std::make_shared<BatchNorm>(channels));
  for (size_t s = 0; s < stages_.size(); ++s, width *= 2) {
    stages_[s] = register_module("layer" + std::to_string(s + 1),
                                 make_resnet_stage(shape, shape.blocks[s], width, channels, s == 0 ? 1 : 2));
  }
  fc_ = std::make_unique<Heads>(*this, "fc", options, channels, context.num_classes);
}

ModelOutput ResNet::forward(const at::Tensor& images) {
  check_shape("images", images.sizes(), {kAnySize, channels_, kAnySize, kAnySize});
  at::Tensor x = at::max_pool2d(rectified(bn1_->forward(conv1_->forward(images))), 3, 2, 1);
  for (const auto& stage : stages_) x = stage->forward(x);
  return (*fc_)(global_average(x));
}

}  // namespace settrain
