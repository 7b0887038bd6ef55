// ShuffleNet v2 as torchvision's: Ma et al., "ShuffleNet V2: Practical Guidelines for Efficient CNN Architecture
// Design" (2018).
#include <ATen/ops/cat.h>
#include <ATen/ops/max_pool2d.h>
#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "models/entries.h"
#include "models/heads.h"
#include "models/inverted_residual.h"
#include "models/layers.h"
#include "models/model.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

/// A channel of `first`, one of `second`, and so on; laid out as they are.
at::Tensor interleaved(const at::Tensor& first, const at::Tensor& second) {
  if (second.suggest_memory_format() == at::MemoryFormat::ChannelsLast) {
    return with_channels_second(
        at::cat({with_channels_last(first).unsqueeze(4), with_channels_last(second).unsqueeze(4)}, 4).flatten(3, 4));
  }
  return at::cat({first.unsqueeze(2), second.unsqueeze(2)}, 2).flatten(1, 2);
}

/// Figure 3c and d of the paper. Half of the channels stay as they are, and the others pass a 1x1 convolution, a 3x3
/// depthwise one, and a 1x1 one; then the channels of both halves alternate. With a stride, all
/// channels pass both the branch and a second one of a 3x3 and a 1x1 convolution.
///
/// Names: branch2.{0,1,3,4,5,6}, and branch1.{0,1,2,3} with a stride.
class ShuffleBlock : public Layer {
 public:
  ShuffleBlock(int64_t in, int64_t out, int64_t stride) {
    constexpr Activation kNone = Activation::kNone, kRelu = Activation::kRelu;
    const UnitOptions options{.kind = ConvolutionKind::kUniform};
    const int64_t half = out / 2, inputs = stride > 1 ? in : half;
    const auto branch1 = register_module("branch1", std::make_shared<torch::nn::Module>());
    if (stride > 1) {
      branch1_.emplace_back(*branch1, "0", "1", options, UnitShape{in, in, 3, stride, in, kNone});
      branch1_.emplace_back(*branch1, "2", "3", options, UnitShape{in, half, 1, 1, 1, kRelu});
    }
    const auto branch2 = register_module("branch2", std::make_shared<torch::nn::Module>());
    branch2_.emplace_back(*branch2, "0", "1", options, UnitShape{inputs, half, 1, 1, 1, kRelu});
    branch2_.emplace_back(*branch2, "3", "4", options, UnitShape{half, half, 3, stride, half, kNone});
    branch2_.emplace_back(*branch2, "5", "6", options, UnitShape{half, half, 1, 1, 1, kRelu});
  }

  at::Tensor forward(const at::Tensor& x) override {
    const bool splits = branch1_.empty();
    const int64_t half = x.size(1) / 2;
    at::Tensor first = splits ? x.slice(1, 0, half) : x, second = splits ? x.slice(1, half) : x;
    for (const ConvolutionUnit& unit : branch1_) first = unit(first);
    for (const ConvolutionUnit& unit : branch2_) second = unit(second);
    return interleaved(first, second);
  }

 private:
  std::vector<ConvolutionUnit> branch1_, branch2_;
};

struct ShuffleNetShape {
  std::array<int64_t, 3> blocks;    // of each stage
  std::array<int64_t, 5> channels;  // of the stem, of the stages, and behind the last convolution
};

/// A 3x3 convolution and a pool that each halve the resolution, three stages that halve it again, and a 1x1
/// convolution.
///
/// state_dict names: conv1.{0,1}, stageS.B.{branch1,branch2} (S from 2), conv5.{0,1}, fc.
class ShuffleNet : public Model {
 public:
  ShuffleNet(const ShuffleNetShape& shape, const ModelOptions& options, const ModelContext& context)
      : image_channels_(context.channels) {
    const auto unit = [this](const char* name, const UnitShape& of) {
      const auto part = register_module(name, std::make_shared<torch::nn::Module>());
      outer_.emplace_back(*part, "0", "1", UnitOptions{.kind = ConvolutionKind::kUniform}, of);
    };
    unit("conv1", {image_channels_, shape.channels[0], 3, 2, 1, Activation::kRelu});
    for (size_t s = 0; s < shape.blocks.size(); ++s) {
      stages_.push_back(register_module(fmt::format("stage{}", s + 2), std::make_shared<Stage>()));
      const int64_t out = shape.channels[s + 1];
      for (int64_t b = 0; b < shape.blocks[s]; ++b) {
        stages_.back()->add(std::to_string(b),
                            std::make_shared<ShuffleBlock>(b == 0 ? shape.channels[s] : out, out, b == 0 ? 2 : 1));
      }
    }
    unit("conv5", {shape.channels[3], shape.channels[4], 1, 1, 1, Activation::kRelu});
    fc_ = std::make_unique<Heads>(*this, "fc", options, shape.channels[4], context.num_classes);
  }

  at::Tensor features(const at::Tensor& images) override {
    check_shape("images", images.sizes(), {kAnySize, image_channels_, kAnySize, kAnySize});
    at::Tensor x = at::max_pool2d(outer_.front()(images), 3, 2, 1);
    for (const auto& stage : stages_) x = stage->forward(x);
    return global_average(outer_.back()(x));
  }

  ModelOutput classify(const at::Tensor& features) override { return (*fc_)(features); }

  // The stem and each block, the last one with the convolution behind it.
  std::vector<std::vector<std::string>> layers() const override {
    std::vector<std::vector<std::string>> all{{"conv1"}};
    for (size_t s = 0; s < stages_.size(); ++s) {
      for (const auto& block : stages_[s]->named_children())
        all.push_back({fmt::format("stage{}.{}", s + 2, block.key())});
    }
    all.back().emplace_back("conv5");
    return all;
  }

 private:
  int64_t image_channels_;
  std::vector<ConvolutionUnit> outer_;  // before the stages, and behind them
  std::vector<std::shared_ptr<Stage>> stages_;
  std::unique_ptr<Heads> fc_;
};

}  // namespace

std::vector<ModelEntry> shufflenet_entries() {
  return {{"shufflenet_v2_x1_0",
           "ShuffleNet v2 of width 1.0 for images of about 224x224 pixels, torchvision's.",
           {},
           [](const config::Config& config, const ModelContext& context) {
             const ShuffleNetShape shape{{4, 8, 4}, {24, 116, 232, 464, 1024}};
             return std::make_shared<ShuffleNet>(shape, config.read<ModelOptions>("model"), context);
           },
           kImageNet,
           torchvision_weights("ShuffleNet_V2_X1_0", "shufflenetv2_x1-5666bf0f80.pth")}};
}

}  // namespace settrain
