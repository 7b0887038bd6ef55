// Residual networks: He et al., "Deep Residual Learning for Image Recognition" (2016); Zagoruyko and Komodakis, "Wide
// Residual Networks" (2016); Xie et al., "Aggregated Residual Transformations for Deep Neural Networks" (2017).
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/max_pool2d.h>
#include <fmt/format.h>

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "models/convolution_unit.h"
#include "models/entries.h"
#include "models/heads.h"
#include "models/layers.h"
#include "models/model.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

/// How a block's input is brought to its output's shape where they differ.
enum class Shortcut {
  kPad,      // every second pixel, and zero channels around (the paper's option A)
  kProject,  // a 1x1 convolution and a batch norm, as child `downsample` with children 0 and 1 (option B)
};

std::shared_ptr<Layer> projection(int64_t in, int64_t out, int64_t stride) {
  return std::make_shared<UnitLayer>(UnitOptions{}, UnitShape{in, out, 1, stride});
}

/// Two 3x3 convolutions, the first with the stride: relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)).
class BasicBlock : public Layer {
 public:
  /// `skipped`: the probability that an image takes the shortcut alone in training.
  BasicBlock(int64_t in, int64_t out, int64_t stride, Shortcut shortcut, double skipped)
      : stride_(stride),
        skipped_(skipped),
        padded_channels_(shortcut == Shortcut::kPad ? out - in : 0),
        unit1_(*this, "conv1", "bn1", {}, {in, out, 3, stride, 1, Activation::kRelu}),
        unit2_(*this, "conv2", "bn2", {}, {out, out, 3, 1, 1, Activation::kRelu}) {
    const bool same = in == out && stride == 1;
    if (shortcut == Shortcut::kProject && !same) {
      downsample_ = register_module("downsample", projection(in, out, stride));
    }
  }

  at::Tensor forward(const at::Tensor& x) override {
    return unit2_.onto(shortcut(x), unit1_(x), is_training() ? skipped_ : 0);
  }

 private:
  at::Tensor shortcut(const at::Tensor& x) const {
    if (downsample_) return downsample_->forward(x);
    const at::Tensor kept = stride_ == 1 ? x : x.slice(2, 0, std::nullopt, stride_).slice(3, 0, std::nullopt, stride_);
    if (padded_channels_ == 0) return kept;
    const int64_t before = padded_channels_ / 2;
    return at::constant_pad_nd(kept, {0, 0, 0, 0, before, padded_channels_ - before});
  }

  int64_t stride_;
  double skipped_;
  int64_t padded_channels_;
  ConvolutionUnit unit1_, unit2_;
  std::shared_ptr<Layer> downsample_;  // may be null
};

/// Convolutions of 1x1 to `inner` channels, 3x3 (in `groups`, and with the stride, as torchvision has it) and 1x1 to
/// `out`; the shortcut projects where the shapes differ.
class BottleneckBlock : public Layer {
 public:
  /// `skipped` as in a BasicBlock.
  BottleneckBlock(int64_t in, int64_t inner, int64_t out, int64_t stride, int64_t groups, double skipped)
      : skipped_(skipped),
        unit1_(*this, "conv1", "bn1", {}, {in, inner, 1, 1, 1, Activation::kRelu}),
        unit2_(*this, "conv2", "bn2", {}, {inner, inner, 3, stride, groups, Activation::kRelu}),
        unit3_(*this, "conv3", "bn3", {}, {inner, out, 1, 1, 1, Activation::kRelu}) {
    if (in != out || stride != 1) downsample_ = register_module("downsample", projection(in, out, stride));
  }

  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor y = unit2_(unit1_(x));
    return unit3_.onto(downsample_ ? downsample_->forward(x) : x, y, is_training() ? skipped_ : 0);
  }

 private:
  double skipped_;
  ConvolutionUnit unit1_, unit2_, unit3_;
  std::shared_ptr<Layer> downsample_;  // may be null
};

enum class ResNetBlock {
  kSmall,       // basic, with padded shortcuts: for images of about 32x32 pixels (He et al., section 4.2)
  kBasic,       // with projections, as the bottlenecks: for images of about 224x224 pixels, torchvision's (table 1)
  kBottleneck,  // whose output has 4 times the stage's channels
};

struct ResNetShape {
  ResNetBlock block;
  std::vector<int64_t> blocks;       // of each stage; all but the first halve the resolution
  int64_t width = 64;                // channels of the first stage; each further one has twice as many
  int64_t widening = 1, groups = 1;  // of the bottlenecks' 3x3 convolutions
};

/// Small networks begin with a 3x3 convolution, the others with a 7x7 one and a pool that each halve the resolution. In
/// training an image skips the last block with probability `stochastic_depth`, and earlier ones more seldom.
///
/// state_dict names: conv1, bn1, layerS.B.{conv1,bn1,conv2,bn2[,conv3,bn3]}, layerS.0.downsample.{0,1}, fc.
class ResNet : public Model {
 public:
  ResNet(const ResNetShape& shape, double stochastic_depth, const ModelOptions& options, const ModelContext& context)
      : image_channels_(context.channels),
        is_small_(shape.block == ResNetBlock::kSmall),
        stem_(*this, "conv1", "bn1", {},
              {image_channels_, shape.width, is_small_ ? 3 : 7, is_small_ ? 1 : 2, 1, Activation::kRelu}) {
    int64_t channels = shape.width, width = shape.width;
    const auto num_blocks = std::accumulate(shape.blocks.begin(), shape.blocks.end(), int64_t{0});
    int64_t earlier = 0;  // blocks
    for (size_t s = 0; s < shape.blocks.size(); ++s, width *= 2) {
      auto stage = std::make_shared<Stage>();
      for (int64_t b = 0; b < shape.blocks[s]; ++b, ++earlier) {
        const int64_t out = shape.block == ResNetBlock::kBottleneck ? 4 * width : width;
        const double skipped = stochastic_depth * static_cast<double>(earlier) / static_cast<double>(num_blocks - 1);
        stage->add(std::to_string(b), block(shape, {channels, width, out}, s > 0 && b == 0 ? 2 : 1, skipped));
        channels = out;
      }
      stages_.push_back(register_module(fmt::format("layer{}", s + 1), std::move(stage)));
    }
    fc_ = std::make_unique<Heads>(*this, "fc", options, channels, context.num_classes);
  }

  at::Tensor features(const at::Tensor& images) override {
    check_shape("images", images.sizes(), {kAnySize, image_channels_, kAnySize, kAnySize});
    at::Tensor x = stem_(images);
    if (!is_small_) x = at::max_pool2d(x, 3, 2, 1);
    for (const auto& stage : stages_) x = stage->forward(x);
    return global_average(x);
  }

  ModelOutput classify(const at::Tensor& features) override { return (*fc_)(features); }

  // As timm: a layer for each residual block.
  std::vector<std::vector<std::string>> layers() const override {
    std::vector<std::vector<std::string>> all{{"conv1", "bn1"}};
    for (size_t s = 0; s < stages_.size(); ++s) {
      for (const auto& block : stages_[s]->named_children())
        all.push_back({fmt::format("layer{}.{}", s + 1, block.key())});
    }
    return all;
  }

 private:
  struct Channels {
    int64_t in, width, out;
  };

  static std::shared_ptr<Layer> block(const ResNetShape& shape, const Channels& channels, int64_t stride,
                                      double skipped) {
    if (shape.block == ResNetBlock::kBottleneck) {
      return std::make_shared<BottleneckBlock>(channels.in, shape.widening * channels.width, channels.out, stride,
                                               shape.groups, skipped);
    }
    const Shortcut shortcut = shape.block == ResNetBlock::kSmall ? Shortcut::kPad : Shortcut::kProject;
    return std::make_shared<BasicBlock>(channels.in, channels.out, stride, shortcut, skipped);
  }

  int64_t image_channels_;
  bool is_small_;
  ConvolutionUnit stem_;
  std::vector<std::shared_ptr<Layer>> stages_;
  std::unique_ptr<Heads> fc_;
};

struct ResNetOptions {
  double stochastic_depth = 0;

  static config::Keys keys() { return {random_depth_key(&ResNetOptions::stochastic_depth, 0)}; }
};

struct SmallResNetOptions {
  int64_t width = 16;  // channels of the first stage

  static config::Keys keys() {
    return {config::key("width", &SmallResNetOptions::width, 16,
                        "Channels of the first stage; the second has twice, the third four times as many.")
                .at_least(1)
                .at_most(1024)
                .in("channels")};
  }
};

ModelEntry resnet_entry(const std::string& name, const std::string& title, const ResNetShape& shape,
                        const std::string& weights, const std::string& digits) {
  return {name,
          title + " for images of about 224x224 pixels, torchvision's.",
          ResNetOptions::keys(),
          [shape](const config::Config& config, const ModelContext& context) {
            return std::make_shared<ResNet>(shape, config.read<ResNetOptions>("model").stochastic_depth,
                                            config.read<ModelOptions>("model"), context);
          },
          kImageNet,
          torchvision_weights(weights, fmt::format("{}-{}.pth", name, digits))};
}

}  // namespace

std::shared_ptr<Model> make_small_resnet(int64_t depth, int64_t width, const ModelOptions& options,
                                         const ModelContext& context, double stochastic_depth) {
  const int64_t blocks = (depth - 2) / 6;
  return std::make_shared<ResNet>(ResNetShape{ResNetBlock::kSmall, {blocks, blocks, blocks}, width}, stochastic_depth,
                                  options, context);
}

std::vector<ModelEntry> small_resnet_entries() {
  std::vector<ModelEntry> entries;
  for (const int64_t depth : {8, 20, 32, 44, 56}) {
    entries.push_back({fmt::format("resnet{}", depth),
                       fmt::format("ResNet-{} for images of about 32x32 pixels (He et al. 2016, section 4.2).", depth),
                       config::joined(SmallResNetOptions::keys(), ResNetOptions::keys()),
                       [depth](const config::Config& config, const ModelContext& context) {
                         return make_small_resnet(depth, config.read<SmallResNetOptions>("model").width,
                                                  config.read<ModelOptions>("model"), context,
                                                  config.read<ResNetOptions>("model").stochastic_depth);
                       },
                       kCifar100});
  }
  return entries;
}

std::vector<ModelEntry> resnet_entries() {
  std::vector<ModelEntry> entries;
  const auto add = [&entries](int64_t depth, const ResNetShape& shape, const char* digits) {
    entries.push_back(resnet_entry(fmt::format("resnet{}", depth), fmt::format("ResNet-{}", depth), shape,
                                   fmt::format("ResNet{}", depth), digits));
  };
  ResNetShape shape{ResNetBlock::kBottleneck, {3, 4, 6, 3}}, shape101{ResNetBlock::kBottleneck, {3, 4, 23, 3}};
  add(18, {ResNetBlock::kBasic, {2, 2, 2, 2}}, "f37072fd");
  add(34, {ResNetBlock::kBasic, {3, 4, 6, 3}}, "b627a593");
  add(50, shape, "0676ba61");
  add(101, shape101, "63fe2227");
  add(152, {ResNetBlock::kBottleneck, {3, 8, 36, 3}}, "394f9c45");
  shape.widening = shape101.widening = 2;
  entries.push_back(resnet_entry("wide_resnet50_2", "Wide ResNet-50-2", shape, "Wide_ResNet50_2", "95faca4d"));
  entries.push_back(resnet_entry("wide_resnet101_2", "Wide ResNet-101-2", shape101, "Wide_ResNet101_2", "32ee1156"));
  shape.groups = 32;
  entries.push_back(resnet_entry("resnext50_32x4d", "ResNeXt-50 32x4d", shape, "ResNeXt50_32X4D", "7cdf4587"));
  return entries;
}

}  // namespace settrain
