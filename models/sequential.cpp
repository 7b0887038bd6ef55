// Networks whose layers stand in a row, as torchvision's: AlexNet, Krizhevsky, "One weird trick for parallelizing
// convolutional neural networks" (2014); VGG, Simonyan and Zisserman, "Very Deep Convolutional Networks for Large-Scale
// Image Recognition" (2015); SqueezeNet, Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters
// and <0.5MB model size" (2016).
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
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

double inverse_root(int64_t number) {
  return 1 / std::sqrt(static_cast<double>(number));
}

/// max(0, x convolved).
class RectifiedConvolution : public BiasedConvolution {
 public:
  using BiasedConvolution::BiasedConvolution;
  at::Tensor forward(const at::Tensor& x) override { return forward_into(Activation::kRelu, x); }
};

struct RowOptions {
  double dropout = 0.5;

  static config::Keys keys() {
    return {config::key("dropout", &RowOptions::dropout, 0.5,
                        "Probability that a feature is set to zero in training: of SqueezeNet before the head; of VGG "
                        "behind each hidden layer, of AlexNet before each.")
                .at_least(0)
                .below(1)};
  }
};

/// The layers before the classifier are `features.N`; N counts ReLUs and poolings, too.
class RowNetwork : public Model {
 public:
  // As timm for VGG: each layer that has weights. Hidden layers of a classifier go with the head.
  std::vector<std::vector<std::string>> layers() const override {
    std::vector<std::vector<std::string>> all;
    for (const auto& layer : features_->named_children()) {
      if (!layer.value()->parameters().empty()) all.push_back({"features." + layer.key()});
    }
    return all;
  }

 protected:
  RowNetwork(const std::string& name, int64_t least_side, const ModelContext& context)
      : image_channels_(context.channels), features_(register_module("features", std::make_shared<Stage>())) {
    check_images(std::min(context.height, context.width) >= least_side, name,
                 fmt::format("images of at least {0}x{0} pixels", least_side), context);
  }

  void add(std::shared_ptr<Layer> layer) { features_->add(std::to_string(number_++), std::move(layer)); }
  void count_relu() { ++number_; }

  at::Tensor features_of(const at::Tensor& images) const {
    check_shape("images", images.sizes(), {kAnySize, image_channels_, kAnySize, kAnySize});
    return features_->forward(images);
  }

 private:
  int64_t image_channels_, number_ = 0;
  std::shared_ptr<Stage> features_;
};

/// max(0, weight x + bias), in training with dropout before or behind it.
class HiddenLayer : public LinearLayer {
 public:
  HiddenLayer(const at::Tensor& weight, const at::Tensor& bias, double dropped_before, double dropped_behind)
      : LinearLayer(weight, bias), dropped_before_(dropped_before), dropped_behind_(dropped_behind) {}

  at::Tensor forward(const at::Tensor& x) override {
    if (!is_training()) return forward_into(Activation::kRelu, x);
    return randomly_dropped(forward_into(Activation::kRelu, randomly_dropped(x, dropped_before_)), dropped_behind_);
  }

 private:
  double dropped_before_, dropped_behind_;
};

struct RowConvolution {
  int64_t out, kernel, stride, padding;
  bool is_pooled;
};

enum class RowStyle { kAlexNet, kVgg };

struct MlpNetworkShape {
  RowStyle style;
  std::string title;
  std::vector<RowConvolution> convolutions;
  int64_t pool;        // pixels of a pooling's windows, every second
  int64_t side;        // pixels of the features that the classifier sees
  int64_t least_side;  // of an image, so that a pixel is left
};

/// Convolutions, the means of side x side parts of their output, and an MLP with two hidden layers.
///
/// state_dict names: features.N; classifier.{0,3,6} in VGG, classifier.{1,4,6} in AlexNet.
class PerceptronNetwork : public RowNetwork {
 public:
  PerceptronNetwork(const MlpNetworkShape& shape, double dropout, const ModelOptions& options,
                    const ModelContext& context)
      : RowNetwork(shape.title, shape.least_side, context), side_(shape.side) {
    constexpr int64_t kHidden = 4096;
    const bool is_vgg = shape.style == RowStyle::kVgg;
    int64_t channels = context.channels;
    for (const RowConvolution& of : shape.convolutions) {
      const std::vector<int64_t> sizes{of.out, channels, of.kernel, of.kernel};
      const int64_t area = of.kernel * of.kernel;
      const ConvolutionGeometry geometry{of.stride, of.padding, 1};
      if (is_vgg) {
        const at::Tensor weight = normal_values(sizes, std::sqrt(2.0) * inverse_root(of.out * area));
        add(std::make_shared<RectifiedConvolution>(weight, geometry));
      } else {
        const double bound = inverse_root(channels * area);
        const at::Tensor weight = uniform_values(sizes, bound);
        add(std::make_shared<RectifiedConvolution>(weight, uniform_values({of.out}, bound), geometry));
      }
      count_relu();
      if (of.is_pooled) add(std::make_shared<MaxPool>(shape.pool, 2));
      channels = of.out;
    }
    const auto classifier = register_module("classifier", std::make_shared<torch::nn::Module>());
    int64_t in = channels * side_ * side_;
    for (const char* name : {is_vgg ? "0" : "1", is_vgg ? "3" : "4"}) {
      const double bound = inverse_root(in), before = is_vgg ? 0 : dropout, behind = is_vgg ? dropout : 0;
      const at::Tensor weight = is_vgg ? normal_values({kHidden, in}, 0.01) : uniform_values({kHidden, in}, bound);
      const at::Tensor bias = is_vgg ? at::zeros({kHidden}, weight.options()) : uniform_values({kHidden}, bound);
      hidden_.push_back(classifier->register_module(name, std::make_shared<HiddenLayer>(weight, bias, before, behind)));
      in = kHidden;
    }
    head_ = std::make_unique<Heads>(*classifier, "6", options, kHidden, context.num_classes,
                                    is_vgg ? FirstHead::kNarrowNormal : FirstHead::kUniform);
  }

  at::Tensor features(const at::Tensor& images) override {
    at::Tensor x = averaged(features_of(images)).flatten(1);
    for (const auto& layer : hidden_) x = layer->forward(x);
    return x;
  }

  ModelOutput classify(const at::Tensor& features) override { return (*head_)(features); }

 private:
  at::Tensor averaged(const at::Tensor& x) const {
    if (x.size(2) == side_ && x.size(3) == side_) return x;
    if (x.is_meta()) return at::empty({x.size(0), x.size(1), side_, side_}, x.options());
    if (!x.is_cuda()) return at::adaptive_avg_pool2d(x, {side_, side_});
    return at::matmul(at::matmul(means_of(x.size(2), x), x), means_of(x.size(3), x).transpose(0, 1));
  }

  // [side, pixels] the weights of the means of adaptive_avg_pool2d along one side.
  at::Tensor means_of(int64_t pixels, const at::Tensor& like) const {
    const at::Tensor weights = at::zeros({side_, pixels});
    for (int64_t i = 0; i < side_; ++i) {
      const int64_t first = i * pixels / side_, end = ((i + 1) * pixels + side_ - 1) / side_;
      weights[i].narrow(0, first, end - first).fill_(1.0 / static_cast<double>(end - first));
    }
    return weights.to(like.options());
  }

  int64_t side_;
  std::vector<std::shared_ptr<Layer>> hidden_;
  std::unique_ptr<Heads> head_;
};

/// A 1x1 convolution to few channels, and of these a 1x1 and a 3x3 one, whose outputs stand side by side.
class Fire : public Layer {
 public:
  Fire(int64_t in, int64_t squeezed, int64_t expanded)
      : squeeze_(register_module("squeeze", convolution(in, squeezed, 1))),
        expand1x1_(register_module("expand1x1", convolution(squeezed, expanded, 1))),
        expand3x3_(register_module("expand3x3", convolution(squeezed, expanded, 3))) {}

  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor y = squeeze_->forward(x);
    return at::cat({expand1x1_->forward(y), expand3x3_->forward(y)}, 1);
  }

  static std::shared_ptr<Layer> convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) {
    const at::Tensor weight =
        uniform_values({out, in, kernel, kernel}, std::sqrt(6.0) * inverse_root(in * kernel * kernel));
    const int64_t padding = stride == 1 ? kernel / 2 : 0;
    return std::make_shared<RectifiedConvolution>(weight, ConvolutionGeometry{stride, padding, 1});
  }

 private:
  std::shared_ptr<Layer> squeeze_, expand1x1_, expand3x3_;
};

/// SqueezeNet 1.0. Its head is a convolution: see HeadInput::kPixels.
///
/// state_dict names: features.0, features.N.{squeeze,expand1x1,expand3x3}, classifier.1.
class SqueezeNet : public RowNetwork {
 public:
  SqueezeNet(double dropout, const ModelOptions& options, const ModelContext& context)
      : RowNetwork("squeezenet1_0", /*least_side=*/21, context), dropout_(dropout) {
    constexpr int64_t kStem = 96;
    add(Fire::convolution(context.channels, kStem, 7, 2));
    count_relu();
    add_pool();
    int64_t channels = kStem;
    const auto add_fire = [&](int64_t squeezed, int64_t expanded) {
      add(std::make_shared<Fire>(channels, squeezed, expanded));
      channels = 2 * expanded;
    };
    for (const int64_t squeezed : {16, 16, 32}) add_fire(squeezed, squeezed == 16 ? 64 : 128);
    add_pool();
    for (const int64_t squeezed : {32, 48, 48, 64}) add_fire(squeezed, 4 * squeezed);
    add_pool();
    add_fire(64, 256);
    const auto classifier = register_module("classifier", std::make_shared<torch::nn::Module>());
    head_ = std::make_unique<Heads>(*classifier, "1", options, channels, context.num_classes, FirstHead::kNarrowNormal,
                                    HeadInput::kPixels);
  }

  at::Tensor features(const at::Tensor& images) override { return features_of(images); }

  ModelOutput classify(const at::Tensor& features) override {
    return (*head_)(is_training() ? randomly_dropped(features, dropout_) : features);
  }

 private:
  void add_pool() { add(std::make_shared<MaxPool>(3, 2, /*to_the_end=*/true)); }

  double dropout_;
  std::unique_ptr<Heads> head_;
};

ModelEntry row_entry(const std::string& name, const std::string& title,
                     std::function<std::shared_ptr<Model>(double, const ModelOptions&, const ModelContext&)> make,
                     const PretrainedSource& weights) {
  return {name,
          title + " for images of about 224x224 pixels, torchvision's.",
          RowOptions::keys(),
          [make = std::move(make)](const config::Config& config, const ModelContext& context) {
            return make(config.read<RowOptions>("model").dropout, config.read<ModelOptions>("model"), context);
          },
          kImageNet,
          weights};
}

ModelEntry mlp_entry(const std::string& title, const MlpNetworkShape& shape, const PretrainedSource& weights) {
  return row_entry(
      shape.title, title,
      [shape](double dropout, const ModelOptions& options, const ModelContext& context) {
        return std::make_shared<PerceptronNetwork>(shape, dropout, options, context);
      },
      weights);
}

}  // namespace

std::vector<ModelEntry> sequential_entries() {
  const MlpNetworkShape alexnet{
      RowStyle::kAlexNet,
      "alexnet",
      {{64, 11, 4, 2, true}, {192, 5, 1, 2, true}, {384, 3, 1, 1, false}, {256, 3, 1, 1, false}, {256, 3, 1, 1, true}},
      3,
      6,
      63};
  MlpNetworkShape vgg11{RowStyle::kVgg, "vgg11", {}, 2, 7, 32};
  for (const auto& [out, is_pooled] : {std::pair<int64_t, bool>{64, true},
                                       {128, true},
                                       {256, false},
                                       {256, true},
                                       {512, false},
                                       {512, true},
                                       {512, false},
                                       {512, true}}) {
    vgg11.convolutions.push_back({out, 3, 1, 1, is_pooled});
  }
  return {mlp_entry("AlexNet", alexnet, torchvision_weights("AlexNet", "alexnet-owt-7be5be79.pth")),
          row_entry(
              "squeezenet1_0", "SqueezeNet 1.0",
              [](double dropout, const ModelOptions& options, const ModelContext& context) {
                return std::make_shared<SqueezeNet>(dropout, options, context);
              },
              torchvision_weights("SqueezeNet1_0", "squeezenet1_0-b66bff10.pth")),
          mlp_entry("VGG-11", vgg11, torchvision_weights("VGG11", "vgg11-8a719046.pth"))};
}

}  // namespace settrain
