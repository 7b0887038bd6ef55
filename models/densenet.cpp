// Densely connected networks: Huang et al., "Densely Connected Convolutional Networks" (2017).
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/max_pool2d.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/convolution_unit.h"
#include "models/entries.h"
#include "models/heads.h"
#include "models/layers.h"
#include "models/model.h"
#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

/// The parts of a layer in which the two kinds of DenseNet differ.
struct DenseStyle {
  std::string norm;  // name of a batch norm in a layer: "norm", followed by its number
  Fan fan;           // of the convolutions' first values
};

const DenseStyle kTorchvisionStyle{"norm", Fan::kIn}, kPapersStyle{"bn", Fan::kOut};

/// New features after the old ones: [x, convolutions(x)] along the channels. With a bottleneck a 1x1 convolution to 4
/// `growth` channels comes before the 3x3 one. Names: norm1, conv1 and, with a bottleneck, norm2, conv2.
class DenseLayer : public Layer {
 public:
  DenseLayer(int64_t in, int64_t growth, bool bottleneck, const DenseStyle& style)
      : norm_(register_module(style.norm + "1", std::make_shared<BatchNorm>(in))) {
    const int64_t inner = bottleneck ? 4 * growth : in;
    if (bottleneck) {
      squeeze_.emplace(*this, "conv1", style.norm + "2", std::make_shared<Convolution>(in, inner, 1, 1, style.fan),
                       inner, Activation::kRelu);
    }
    conv_ =
        register_module(bottleneck ? "conv2" : "conv1", std::make_shared<Convolution>(inner, growth, 3, 1, style.fan));
  }

  at::Tensor forward(const at::Tensor& x) override { return at::cat({x, grown(x)}, 1); }

  /// The new features alone. x may be some of the channels of a tensor.
  at::Tensor grown(const at::Tensor& x) {
    const at::Tensor y = norm_->rectified_norm(x);
    return conv_->forward(squeeze_ ? (*squeeze_)(y) : y);
  }

 private:
  std::shared_ptr<BatchNorm> norm_;
  std::optional<ConvolutionUnit> squeeze_;
  std::shared_ptr<Convolution> conv_;
};

/// Dense layers one after the other. Where prepared, all write into one tensor of the block's last channels, in which
/// the features before a layer are the first channels, so that none is copied again.
class DenseBlock : public Stage {
 public:
  void add(const std::string& name, std::shared_ptr<DenseLayer> layer) {
    dense_.push_back(layer.get());
    Stage::add(name, std::move(layer));
  }

  at::Tensor forward(const at::Tensor& x) override {
    if (!is_prepared() || dense_.empty()) return Stage::forward(x);
    at::Tensor all;
    int64_t channels = x.size(1);
    for (size_t l = 0; l < dense_.size(); ++l) {
      const at::Tensor grown = dense_[l]->grown(l == 0 ? x : all.narrow(1, 0, channels));
      if (l == 0) {
        const int64_t last = channels + std::ssize(dense_) * grown.size(1);
        all = at::empty({x.size(0), last, x.size(2), x.size(3)}, grown.options(), at::MemoryFormat::ChannelsLast);
        all.narrow(1, 0, channels).copy_(x);
      }
      all.narrow(1, channels, grown.size(1)).copy_(grown);
      channels += grown.size(1);
    }
    return all;
  }

 private:
  std::vector<DenseLayer*> dense_;
};

/// Batch norm, a 1x1 convolution to `out` channels, and the mean of every 2x2 pixels; where prepared the means come
/// before the convolution, which then has a quarter of the pixels.
class DenseTransition : public Layer {
 public:
  /// `norm` and `conv` are the names of its layers.
  DenseTransition(int64_t in, int64_t out, const std::string& norm, const std::string& conv, Fan fan)
      : norm_(register_module(norm, std::make_shared<BatchNorm>(in))),
        conv_(register_module(conv, std::make_shared<Convolution>(in, out, 1, 1, fan))) {}

  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor y = norm_->rectified_norm(x);
    return is_prepared() ? conv_->forward(at::avg_pool2d(y, 2)) : at::avg_pool2d(conv_->forward(y), 2);
  }

 private:
  std::shared_ptr<BatchNorm> norm_;
  std::shared_ptr<Layer> conv_;
};

struct DenseNetShape {
  int64_t growth, first_channels;
  std::array<int64_t, 4> layers;  // of each block
};

/// All layers of torchvision's DenseNets before the head.
class DenseNetFeatures : public Layer {
 public:
  DenseNetFeatures(const DenseNetShape& shape, int64_t image_channels)
      : channels_(shape.first_channels),
        stem_(*this, "conv0", "norm0", std::make_shared<Convolution>(image_channels, channels_, 7, 2, Fan::kIn),
              channels_, Activation::kRelu) {
    for (size_t b = 0; b < shape.layers.size(); ++b) {
      auto block = std::make_shared<DenseBlock>();
      for (int64_t l = 1; l <= shape.layers[b]; ++l, channels_ += shape.growth) {
        block->add(fmt::format("denselayer{}", l),
                   std::make_shared<DenseLayer>(channels_, shape.growth, true, kTorchvisionStyle));
      }
      add(fmt::format("denseblock{}", b + 1), std::move(block));
      if (b + 1 == shape.layers.size()) break;
      add(fmt::format("transition{}", b + 1),
          std::make_shared<DenseTransition>(channels_, channels_ / 2, "norm", "conv", Fan::kIn));
      channels_ /= 2;
    }
    norm5_ = register_module("norm5", std::make_shared<BatchNorm>(channels_));
  }

  at::Tensor forward(const at::Tensor& images) override {
    at::Tensor x = at::max_pool2d(stem_(images), 3, 2, 1);
    for (const auto& layer : layers_) x = layer->forward(x);
    return norm5_->rectified_norm(x);
  }

  int64_t channels() const { return channels_; }

 private:
  void add(const std::string& name, std::shared_ptr<Layer> layer) {
    layers_.push_back(register_module(name, std::move(layer)));
  }

  int64_t channels_;  // of the output, once it is built
  ConvolutionUnit stem_;
  std::vector<std::shared_ptr<Layer>> layers_;
  std::shared_ptr<BatchNorm> norm5_;
};

/// For images of about 224x224 pixels, as torchvision's (table 1 of the paper).
///
/// state_dict names: features.{conv0,norm0}, features.denseblockB.denselayerL.{norm1,conv1,norm2,conv2},
/// features.transitionB.{norm,conv}, features.norm5, classifier.
class DenseNet : public Model {
 public:
  DenseNet(const DenseNetShape& shape, const ModelOptions& options, const ModelContext& context)
      : image_channels_(context.channels) {
    // conv0 and its pool halve upwards, the three transitions downwards: 29 is the least that leaves a pixel.
    check_images(std::min(context.height, context.width) >= 29, "this DenseNet", "images of at least 29x29 pixels",
                 context);
    auto features = std::make_shared<DenseNetFeatures>(shape, context.channels);
    const int64_t num_features = features->channels();
    features_ = register_module("features", std::move(features));
    classifier_ =
        std::make_unique<Heads>(*this, "classifier", options, num_features, context.num_classes, FirstHead::kZeroBias);
  }

  at::Tensor features(const at::Tensor& images) override {
    check_shape("images", images.sizes(), {kAnySize, image_channels_, kAnySize, kAnySize});
    return global_average(features_->forward(images));
  }

  ModelOutput classify(const at::Tensor& features) override { return (*classifier_)(features); }

  // As timm: each dense layer, the last of a block with the transition after it; norm5 goes with the head.
  std::vector<std::vector<std::string>> layers() const override {
    std::vector<std::vector<std::string>> all{{"features.conv0", "features.norm0"}};
    for (const auto& part : features_->named_children()) {
      const std::string name = "features." + part.key();
      if (part.key().starts_with("transition")) all.back().push_back(name);
      if (!part.key().starts_with("denseblock")) continue;
      for (const auto& layer : part.value()->named_children()) all.push_back({name + "." + layer.key()});
    }
    return all;
  }

 private:
  int64_t image_channels_;
  std::shared_ptr<Layer> features_;
  std::unique_ptr<Heads> classifier_;
};

/// Only for names: the published code has the layers of a block under `layer`.
class SmallDenseBlock : public Layer {
 public:
  explicit SmallDenseBlock(std::shared_ptr<DenseBlock> layers) : layers_(register_module("layer", std::move(layers))) {}
  at::Tensor forward(const at::Tensor& x) override { return layers_->forward(x); }

 private:
  std::shared_ptr<DenseBlock> layers_;
};

/// For images of 32x32 pixels, as the papers' experiments on CIFAR-100 have them (section 4 of the paper).
///
/// Three blocks of layers that add `growth` channels each, at 32, 16 and 8 pixels; the first convolution has 2 `growth`
/// channels. Depth counts the convolutions and the head: a block has (depth - 4) / 3 layers, with bottlenecks half as
/// many. DenseNet-BC 40-40 is the papers' "DenseNet 40-40", whose text does not say BC.
///
/// state_dict names: conv1, block{1,2,3}.layer.L.{bn1,conv1[,bn2,conv2]}, trans{1,2}.{bn1,conv1}, bn1, fc.
class SmallDenseNet : public Model {
 public:
  SmallDenseNet(const SmallDenseNetShape& shape, bool bc, const ModelOptions& options, const ModelContext& context)
      : image_channels_(context.channels) {
    check_images(context.height == kSize && context.width == kSize, "this DenseNet",
                 fmt::format("images of {0}x{0} pixels", kSize), context);
    const auto add = [this](const std::string& name, std::shared_ptr<Layer> layer) {
      layers_.push_back(register_module(name, std::move(layer)));
    };
    const int64_t layers = layers_of_a_block(shape.depth, bc);
    int64_t channels = 2 * shape.growth;
    add("conv1", std::make_shared<Convolution>(context.channels, channels, 3));
    for (int64_t b = 1; b <= kBlocks; ++b) {
      auto in_block = std::make_shared<DenseBlock>();
      for (int64_t l = 0; l < layers; ++l, channels += shape.growth) {
        in_block->add(std::to_string(l), std::make_shared<DenseLayer>(channels, shape.growth, bc, kPapersStyle));
      }
      add(fmt::format("block{}", b), std::make_shared<SmallDenseBlock>(std::move(in_block)));
      if (b == kBlocks) break;
      const int64_t out = bc ? channels / 2 : channels;
      add(fmt::format("trans{}", b), std::make_shared<DenseTransition>(channels, out, "bn1", "conv1", Fan::kOut));
      channels = out;
    }
    norm_ = register_module("bn1", std::make_shared<BatchNorm>(channels));
    heads_ = std::make_unique<Heads>(*this, "fc", options, channels, context.num_classes, FirstHead::kZeroBias);
  }

  at::Tensor features(const at::Tensor& images) override {
    check_shape("images", images.sizes(), {kAnySize, image_channels_, kSize, kSize});
    at::Tensor x = images;
    for (const auto& layer : layers_) x = layer->forward(x);
    return global_average(norm_->rectified_norm(x));
  }

  ModelOutput classify(const at::Tensor& features) override { return (*heads_)(features); }

  // As the larger DenseNets'.
  std::vector<std::vector<std::string>> layers() const override {
    std::vector<std::vector<std::string>> all{{"conv1"}};
    for (const auto& part : named_children()) {
      if (part.key().starts_with("trans")) all.back().push_back(part.key());
      if (!part.key().starts_with("block")) continue;
      for (const auto& layer : part.value()->named_children().front().value()->named_children()) {
        all.push_back({fmt::format("{}.layer.{}", part.key(), layer.key())});
      }
    }
    return all;
  }

 private:
  static constexpr int64_t kSize = 32, kBlocks = 3;

  static int64_t layers_of_a_block(int64_t depth, bool bc) {
    const int64_t per_layer = kBlocks * (bc ? 2 : 1), layers = (depth - 4) / per_layer;
    if (depth != per_layer * layers + 4) {
      throw KeyError(
          "model.depth",
          fmt::format("{} gives no whole number of layers: {} n + 4 is wanted, such as {} or {}", depth, per_layer,
                      per_layer * std::max<int64_t>(layers, 1) + 4, per_layer * (layers + 1) + 4));
    }
    return layers;
  }

  int64_t image_channels_;
  std::vector<std::shared_ptr<Layer>> layers_;
  std::shared_ptr<BatchNorm> norm_;
  std::unique_ptr<Heads> heads_;
};

struct SmallDenseNetOptions {
  bool bc = true;

  static config::Keys keys() {
    return {config::key("bc", &SmallDenseNetOptions::bc, true,
                        "DenseNet-BC: 1x1 bottlenecks, and transitions that halve the channels.")};
  }
};

std::shared_ptr<Model> read_small_densenet(const SmallDenseNetShape& shape, const config::Config& config,
                                           const ModelContext& context) {
  return make_small_densenet(shape, config.read<SmallDenseNetOptions>("model").bc, config.read<ModelOptions>("model"),
                             context);
}

}  // namespace

config::Keys SmallDenseNetShape::keys() {
  return {config::key("depth", &SmallDenseNetShape::depth, 40,
                      "Convolutions and the head: 6 n + 4, or 3 n + 4 without bottlenecks.")
              .at_least(10)
              .at_most(1000)
              .in("layers"),
          config::key("growth", &SmallDenseNetShape::growth, 40, "Channels that each layer adds.")
              .at_least(1)
              .at_most(1024)
              .in("channels")};
}

std::shared_ptr<Model> make_small_densenet(const SmallDenseNetShape& shape, bool bc, const ModelOptions& options,
                                           const ModelContext& context) {
  return std::make_shared<SmallDenseNet>(shape, bc, options, context);
}

std::vector<ModelEntry> small_densenet_entries() {
  std::vector<ModelEntry> entries{
      {"densenet", "DenseNet of any depth and growth for images of 32x32 pixels (Huang et al. 2017).",
       config::joined(SmallDenseNetShape::keys(), SmallDenseNetOptions::keys()),
       [](const config::Config& config, const ModelContext& context) {
         return read_small_densenet(config.read<SmallDenseNetShape>("model"), config, context);
       },
       kCifar100}};
  for (const SmallDenseNetShape shape : {SmallDenseNetShape{40, 12}, {40, 40}}) {
    entries.push_back({fmt::format("densenet{}_{}", shape.depth, shape.growth),
                       fmt::format("DenseNet {}-{} of the papers' experiments, for images of 32x32 pixels.",
                                   shape.depth, shape.growth),
                       SmallDenseNetOptions::keys(),
                       [shape](const config::Config& config, const ModelContext& context) {
                         return read_small_densenet(shape, config, context);
                       },
                       kCifar100});
  }
  return entries;
}

std::vector<ModelEntry> densenet_entries() {
  std::vector<ModelEntry> entries;
  const auto add = [&entries](int64_t depth, const DenseNetShape& shape, const char* digits) {
    const std::string name = fmt::format("densenet{}", depth);
    entries.push_back({name,
                       fmt::format("DenseNet-{} for images of about 224x224 pixels, torchvision's.", depth),
                       {},
                       [shape](const config::Config& config, const ModelContext& context) {
                         return std::make_shared<DenseNet>(shape, config.read<ModelOptions>("model"), context);
                       },
                       kImageNet,
                       torchvision_weights(fmt::format("DenseNet{}", depth), fmt::format("{}-{}.pth", name, digits))});
  };
  add(121, {32, 64, {6, 12, 24, 16}}, "a639ec97");
  add(161, {48, 96, {6, 12, 36, 24}}, "8d451a50");
  add(169, {32, 64, {6, 12, 32, 32}}, "b2777c0a");
  add(201, {32, 64, {6, 12, 48, 32}}, "c1103571");
  return entries;
}

}  // namespace settrain
