// MobileNets as torchvision's: Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks" (2018), and
// Howard et al., "Searching for MobileNetV3" (2019).
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/autocast.h"
#include "models/cost.h"
#include "models/entries.h"
#include "models/heads.h"
#include "models/inverted_residual.h"
#include "models/layers.h"
#include "models/model.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

struct MobileNetShape {
  InvertedNames names;
  UnitOptions units;
  Activation activation;              // of the stem and of all that is behind the blocks
  std::vector<InvertedShape> blocks;  // the first one's input is the stem's output
  int64_t last_channels;              // channels behind the last convolution
  int64_t hidden = 0;                 // units of a layer before the head; 0: there is none
};

// Version 3's layer before the head: its units are the features, so it computes in float32 in every form, as heads do.
class FloatLinearLayer : public LinearLayer {
 public:
  using LinearLayer::LinearLayer;
  void prepare(InferenceForm form) override {
    LinearLayer::prepare(form == InferenceForm::kBf16 ? InferenceForm::kFast : form);
  }
};

/// A 3x3 convolution that halves the resolution, inverted residuals, a 1x1 convolution, and in version 3 a hidden layer
/// behind the average over the pixels.
///
/// state_dict names: features.0.{0,1}, features.B.{conv,block} (B from 1), features.LAST.{0,1}, and classifier.1, or
/// classifier.{0,3} with a hidden layer.
class MobileNet : public Model {
 public:
  MobileNet(const MobileNetShape& shape, double dropout, const ModelOptions& options, const ModelContext& context)
      : activation_(shape.activation),
        image_channels_(context.channels),
        dropout_(dropout),
        features_(register_module("features", std::make_shared<Stage>())) {
    size_t parts = 0;
    const auto add = [&](std::shared_ptr<Layer> layer) { features_->add(std::to_string(parts++), std::move(layer)); };
    const int64_t stem = shape.blocks.front().in, last = shape.blocks.back().out;
    add(std::make_shared<UnitLayer>(shape.units, UnitShape{image_channels_, stem, 3, 2, 1, activation_}));
    for (const InvertedShape& block : shape.blocks) {
      add(std::make_shared<InvertedResidual>(shape.names, shape.units, block));
    }
    add(std::make_shared<UnitLayer>(shape.units, UnitShape{last, shape.last_channels, 1, 1, 1, activation_}));

    constexpr double kDeviation = 0.01;
    const auto classifier = register_module("classifier", std::make_shared<torch::nn::Module>());
    if (shape.hidden > 0) {
      hidden_ = classifier->register_module(
          "0", std::make_shared<FloatLinearLayer>(normal_values({shape.hidden, shape.last_channels}, kDeviation),
                                                  at::zeros({shape.hidden}, CostCounter::device())));
    }
    head_ =
        std::make_unique<Heads>(*classifier, hidden_ ? "3" : "1", options, hidden_ ? shape.hidden : shape.last_channels,
                                context.num_classes, FirstHead::kNarrowNormal);
  }

  at::Tensor features(const at::Tensor& images) override {
    check_shape("images", images.sizes(), {kAnySize, image_channels_, kAnySize, kAnySize});
    const at::Tensor means = global_average(features_->forward(images));
    if (!hidden_) return means;
    const Autocast exact(means.device().type(), false);
    return hidden_->forward_into(activation_, means);
  }

  ModelOutput classify(const at::Tensor& features) override {
    return (*head_)(is_training() ? randomly_dropped(features, dropout_) : features);
  }

  // As timm: the stem and each block; in version 2 the last block with the convolution behind it, which in version 3 is
  // a layer of its own. The hidden layer goes with the head.
  std::vector<std::vector<std::string>> layers() const override {
    std::vector<std::vector<std::string>> all;
    for (const auto& part : features_->named_children()) all.push_back({"features." + part.key()});
    if (!hidden_) {
      const std::vector<std::string> last = all.back();
      all.pop_back();
      all.back().insert(all.back().end(), last.begin(), last.end());
    }
    return all;
  }

 private:
  Activation activation_;
  int64_t image_channels_;
  double dropout_;
  std::shared_ptr<Stage> features_;
  std::shared_ptr<LinearLayer> hidden_;  // may be null
  std::unique_ptr<Heads> head_;
};

/// Table 2 of the paper of 2018.
MobileNetShape mobilenet_v2() {
  struct Blocks {
    int64_t expansion, channels, number, stride;  // the first block has the stride
  };
  MobileNetShape shape{InvertedNames::kConv, {}, Activation::kRelu6, {}, 1280};
  int64_t channels = 32;
  for (const Blocks& of : {Blocks{1, 16, 1, 1},
                           {6, 24, 2, 2},
                           {6, 32, 3, 2},
                           {6, 64, 4, 2},
                           {6, 96, 3, 1},
                           {6, 160, 3, 2},
                           {6, 320, 1, 1}}) {
    for (int64_t b = 0; b < of.number; ++b) {
      shape.blocks.push_back(
          {channels, of.expansion * channels, of.channels, 3, b == 0 ? of.stride : 1, Activation::kRelu6});
      channels = of.channels;
    }
  }
  return shape;
}

/// A row of tables 1 and 2 of the paper of 2019.
struct MobileBlock {
  int64_t kernel, inner, out;
  bool squeezes;
  Activation activation;
  int64_t stride;
};

/// `hidden`: units before the head.
MobileNetShape mobilenet_v3(const std::vector<MobileBlock>& blocks, int64_t hidden) {
  const UnitOptions units{.norm = {.epsilon = 1e-3, .momentum = 0.01}};
  MobileNetShape shape{InvertedNames::kBlock, units, Activation::kHardSwish, {}, 6 * blocks.back().out, hidden};
  int64_t channels = 16;
  for (const MobileBlock& of : blocks) {
    const int64_t squeezed = of.squeezes ? channels_of_eight(static_cast<double>(of.inner / 4)) : 0;
    shape.blocks.push_back({channels, of.inner, of.out, of.kernel, of.stride, of.activation, squeezed});
    channels = of.out;
  }
  return shape;
}

struct MobileNetOptions {
  double dropout = 0;

  static config::Keys keys() { return {dropout_key(&MobileNetOptions::dropout, 0.2)}; }
};

}  // namespace

std::vector<ModelEntry> mobilenet_entries() {
  constexpr Activation relu = Activation::kRelu, swish = Activation::kHardSwish;
  std::vector<ModelEntry> entries;
  // `name` and `weights` are torchvision's.
  const auto add = [&](const std::string& name, const char* title, const MobileNetShape& shape,
                       const std::string& weights, const char* digits) {
    entries.push_back({name, fmt::format("{} for images of about 224x224 pixels, torchvision's.", title),
                       MobileNetOptions::keys(),
                       [shape](const config::Config& config, const ModelContext& context) {
                         return std::make_shared<MobileNet>(shape, config.read<MobileNetOptions>("model").dropout,
                                                            config.read<ModelOptions>("model"), context);
                       },
                       kImageNet, torchvision_weights(weights, fmt::format("{}-{}.pth", name, digits))});
  };
  add("mobilenet_v2", "MobileNetV2", mobilenet_v2(), "MobileNet_V2", "b0353104");
  add("mobilenet_v3_small", "MobileNetV3-Small",
      mobilenet_v3({{3, 16, 16, true, relu, 2},
                    {3, 72, 24, false, relu, 2},
                    {3, 88, 24, false, relu, 1},
                    {5, 96, 40, true, swish, 2},
                    {5, 240, 40, true, swish, 1},
                    {5, 240, 40, true, swish, 1},
                    {5, 120, 48, true, swish, 1},
                    {5, 144, 48, true, swish, 1},
                    {5, 288, 96, true, swish, 2},
                    {5, 576, 96, true, swish, 1},
                    {5, 576, 96, true, swish, 1}},
                   1024),
      "MobileNet_V3_Small", "047dcff4");
  add("mobilenet_v3_large", "MobileNetV3-Large",
      mobilenet_v3({{3, 16, 16, false, relu, 1},
                    {3, 64, 24, false, relu, 2},
                    {3, 72, 24, false, relu, 1},
                    {5, 72, 40, true, relu, 2},
                    {5, 120, 40, true, relu, 1},
                    {5, 120, 40, true, relu, 1},
                    {3, 240, 80, false, swish, 2},
                    {3, 200, 80, false, swish, 1},
                    {3, 184, 80, false, swish, 1},
                    {3, 184, 80, false, swish, 1},
                    {3, 480, 112, true, swish, 1},
                    {3, 672, 112, true, swish, 1},
                    {5, 672, 160, true, swish, 2},
                    {5, 960, 160, true, swish, 1},
                    {5, 960, 160, true, swish, 1}},
                   1280),
      "MobileNet_V3_Large", "8738ca79");
  return entries;
}

}  // namespace settrain
