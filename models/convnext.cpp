// ConvNeXt for images of about 224x224 pixels, as torchvision's: Liu et al., "A ConvNet for the 2020s" (2022).
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "models/cost.h"
#include "models/entries.h"
#include "models/heads.h"
#include "models/layers.h"
#include "models/model.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

/// Standard deviation of the first weights of every layer, which are normal. (torchvision cuts them off at 2, a hundred
/// standard deviations.)
constexpr double kConvNextDeviation = 0.02;

/// x + layer_scale * branch(x), in training with stochastic depth (figure 4 of the paper). The branch is a 7x7
/// depthwise convolution, a layer norm, and two pointwise layers, to 4 `channels` and back, with GELU between them.
///
/// Names: layer_scale [channels, 1, 1], which starts at 1e-6, and block.{0,2,3,5}.
class ConvNextBlock : public Layer {
 public:
  /// `skipped`: the probability that an image skips the branch in training.
  ConvNextBlock(int64_t channels, double skipped)
      : skipped_(skipped),
        layer_scale_(register_parameter("layer_scale", at::full({channels, 1, 1}, 1e-6, CostCounter::device()))) {
    constexpr int64_t kKernel = 7, kExpansion = 4;  // the kernel is the depthwise convolution's
    const auto pointwise = [](int64_t in, int64_t out) {
      return std::make_shared<LinearLayer>(normal_values({out, in}, kConvNextDeviation),
                                           at::zeros(out, CostCounter::device()));
    };
    auto block = register_module("block", std::make_shared<torch::nn::Module>());
    convolution_ = block->register_module(
        "0", std::make_shared<BiasedConvolution>(normal_values({channels, 1, kKernel, kKernel}, kConvNextDeviation),
                                                 ConvolutionGeometry{1, kKernel / 2, channels}));
    norm_ = block->register_module("2", std::make_shared<LayerNorm>(channels));
    expand_ = block->register_module("3", pointwise(channels, kExpansion * channels));
    project_ = block->register_module("5", pointwise(kExpansion * channels, channels));
    project_->set_scale(layer_scale_);
  }

  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor pixels = norm_->forward(with_channels_last(convolution_->forward(x)));
    const at::Tensor hidden = expand_->forward_into(Activation::kGelu, pixels);
    if (is_prepared()) return with_channels_second(project_->scaled_onto(with_channels_last(x), hidden));
    const at::Tensor branch = with_channels_second(project_->forward(hidden));
    const at::Tensor scaled = layer_scale_ * branch;
    return (is_training() ? drop_path(scaled, skipped_) : scaled) + x;
  }

 private:
  double skipped_;
  at::Tensor layer_scale_;
  std::shared_ptr<Layer> convolution_, norm_;
  std::shared_ptr<LinearLayer> expand_, project_;
};

/// A convolution of patches of size x size pixels, side by side.
std::shared_ptr<Layer> patches(int64_t in, int64_t out, int64_t size) {
  return std::make_shared<BiasedConvolution>(normal_values({out, in, size, size}, kConvNextDeviation),
                                             ConvolutionGeometry{size, 0, 1});
}

/// A stem of 4x4 patches, and stages of blocks with a halving between any two.
///
/// state_dict names: features.0.{0,1} (the stem), features.{1,3,5,7}.B.{layer_scale,block.{0,2,3,5}},
/// features.{2,4,6}.{0,1} (the halvings), classifier.{0,2}.
class ConvNext : public Model {
 public:
  ConvNext(const ConvNextShape& shape, double stochastic_depth, const ModelOptions& options,
           const ModelContext& context)
      : image_channels_(context.channels), blocks_(shape.blocks) {
    check_images(std::min(context.height, context.width) >= 32, "ConvNeXt", "images of at least 32x32 pixels", context);
    auto features = register_module("features", std::make_shared<torch::nn::Module>());
    const auto add = [this](torch::nn::Module& part, const std::string& name, std::shared_ptr<Layer> layer) {
      features_.push_back(part.register_module(name, std::move(layer)));
    };
    const auto num_blocks = std::accumulate(shape.blocks.begin(), shape.blocks.end(), int64_t{0});
    int64_t channels = context.channels, block = 0;
    for (size_t s = 0; s < shape.blocks.size(); ++s) {
      const auto between = features->register_module(std::to_string(2 * s), std::make_shared<torch::nn::Module>());
      const int64_t out = shape.channels[s];
      if (s == 0) {
        add(*between, "0", patches(channels, out, 4));
        add(*between, "1", std::make_shared<ChannelNorm>(out));
      } else {
        add(*between, "0", std::make_shared<ChannelNorm>(channels));
        add(*between, "1", patches(channels, out, 2));
      }
      channels = out;
      auto stage = std::make_shared<Stage>();
      for (int64_t b = 0; b < shape.blocks[s]; ++b, ++block) {
        const double skipped = stochastic_depth * static_cast<double>(block) / static_cast<double>(num_blocks - 1);
        stage->add(std::to_string(b), std::make_shared<ConvNextBlock>(channels, skipped));
      }
      add(*features, std::to_string(2 * s + 1), std::move(stage));
    }
    auto classifier = register_module("classifier", std::make_shared<torch::nn::Module>());
    norm_ = classifier->register_module("0", std::make_shared<LayerNorm>(channels));
    classifier_ = std::make_unique<Heads>(*classifier, "2", options, channels, context.num_classes, FirstHead::kNormal);
  }

  at::Tensor features(const at::Tensor& images) override {
    check_shape("images", images.sizes(), {kAnySize, image_channels_, kAnySize, kAnySize});
    at::Tensor x = images;
    for (const auto& layer : features_) x = layer->forward(x);
    return norm_->forward(global_average(x));
  }

  ModelOutput classify(const at::Tensor& features) override { return (*classifier_)(features); }

  // As timm: each block, the first of a stage with the halving before it; the norm after the blocks goes with the head.
  std::vector<std::vector<std::string>> layers() const override {
    std::vector<std::vector<std::string>> all{{"features.0"}};
    for (size_t s = 0; s < blocks_.size(); ++s) {
      for (int64_t b = 0; b < blocks_[s]; ++b) {
        all.push_back({fmt::format("features.{}.{}", 2 * s + 1, b)});
        if (b == 0 && s > 0) all.back().push_back(fmt::format("features.{}", 2 * s));
      }
    }
    return all;
  }

 private:
  int64_t image_channels_;
  std::array<int64_t, 4> blocks_;
  std::vector<std::shared_ptr<Layer>> features_;
  std::shared_ptr<Layer> norm_;
  std::unique_ptr<Heads> classifier_;
};

struct ConvNextOptions {
  double stochastic_depth = 0;

  /// `usual`: the rate with which the network was published.
  static config::Keys keys(double usual) { return {random_depth_key(&ConvNextOptions::stochastic_depth, usual)}; }
};

}  // namespace

std::shared_ptr<Model> make_convnext(const ConvNextShape& shape, double stochastic_depth, const ModelOptions& options,
                                     const ModelContext& context) {
  return std::make_shared<ConvNext>(shape, stochastic_depth, options, context);
}

std::vector<ModelEntry> convnext_entries() {
  std::vector<ModelEntry> entries;
  // `resized`: the shorter side of which torchvision's evaluation cuts out 224 pixels.
  const auto add = [&entries](const std::string& size, const char* letter, const ConvNextShape& shape,
                              double stochastic_depth, const std::string& digits, double resized) {
    std::string weights = size;
    weights.front() = static_cast<char>(std::toupper(weights.front()));
    entries.push_back({"convnext_" + size,
                       fmt::format("ConvNeXt-{} for images of about 224x224 pixels, torchvision's.", letter),
                       ConvNextOptions::keys(stochastic_depth),
                       [shape](const config::Config& config, const ModelContext& context) {
                         return make_convnext(shape, config.read<ConvNextOptions>("model").stochastic_depth,
                                              config.read<ModelOptions>("model"), context);
                       },
                       kImageNet,
                       torchvision_weights("ConvNeXt_" + weights, fmt::format("convnext_{}-{}.pth", size, digits),
                                           "bilinear", 224 / resized)});
  };
  add("tiny", "T", {{3, 3, 9, 3}, {96, 192, 384, 768}}, 0.1, "983f1562", 236);
  add("small", "S", {{3, 3, 27, 3}, {96, 192, 384, 768}}, 0.4, "0c510722", 230);
  add("base", "B", {{3, 3, 27, 3}, {128, 256, 512, 1024}}, 0.5, "6075fbad", 232);
  add("large", "L", {{3, 3, 27, 3}, {192, 384, 768, 1536}}, 0.5, "ea097f82", 232);
  return entries;
}

}  // namespace settrain
