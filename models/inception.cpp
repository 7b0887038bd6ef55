// Inception networks: Szegedy et al., "Rethinking the Inception Architecture for Computer Vision" (2016), Inception-v3
// as torchvision's; Szegedy et al., "Inception-v4, Inception-ResNet and the Impact of Residual Connections on Learning"
// (2017), both as timm's.
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/max_pool2d.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
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

at::Tensor first_values(TensorNames library, at::IntArrayRef sizes, int64_t inputs) {
  constexpr double kTorchvisionDeviation = 0.1;
  return library == TensorNames::kTorchvision ? normal_values(sizes, kTorchvisionDeviation)
                                              : uniform_values(sizes, 1 / std::sqrt(static_cast<double>(inputs)));
}

/// A convolution. Without padding it shrinks the image by what its kernel does not reach.
struct InceptionConvolution {
  int64_t out, rows = 1, columns = 1, stride = 1;
  bool is_padded = true;
};

InceptionConvolution square(int64_t out, int64_t kernel) {
  return {out, kernel, kernel};
}

/// 3x3, to half the resolution.
InceptionConvolution halving(int64_t out) {
  return {out, 3, 3, 2, /*is_padded=*/false};
}

/// A convolution `conv`, a batch norm `bn` and ReLU.
class InceptionUnit : public Layer {
 public:
  InceptionUnit(TensorNames library, int64_t in, const InceptionConvolution& shape)
      : unit_(*this, "conv", "bn", convolution(library, in, shape), shape.out, Activation::kRelu,
              {.epsilon = kTensorFlowEpsilon}) {}

  at::Tensor forward(const at::Tensor& x) override { return unit_(x); }

 private:
  static constexpr double kTensorFlowEpsilon = 1e-3;

  static std::shared_ptr<Convolution> convolution(TensorNames library, int64_t in, const InceptionConvolution& shape) {
    const at::Tensor weight =
        first_values(library, {shape.out, in, shape.rows, shape.columns}, in * shape.rows * shape.columns);
    const ConvolutionGeometry geometry{shape.stride, shape.is_padded ? shape.rows / 2 : 0, 1,
                                       shape.is_padded ? shape.columns / 2 : 0};
    return std::make_shared<Convolution>(weight, geometry);
  }

  ConvolutionUnit unit_;
};

/// The layer before the convolutions of a branch.
enum class BranchPool {
  kNone,
  kHalving,     // the maxima of 3x3 pixels, to half the resolution
  kMean,        // the mean of 3x3 pixels, with zeros around the image
  kInsideMean,  // the same over the pixels inside the image
};

/// Convolutions one after the other, and behind them `split` ones side by side. Names of them: torchvision's NAME
/// alone, or NAME_1, NAME_2; timm's NAME, or NAME.0, NAME.1, of which a pool is one; of a split branch NAME_1, NAME_2a,
/// NAME_2b, in timm from 0.
struct BranchShape {
  std::string name;
  BranchPool pool;
  std::vector<InceptionConvolution> convolutions;
  std::vector<InceptionConvolution> split = {};
};

/// Branches on the same input, whose outputs stand side by side.
class InceptionBlock : public Layer {
 public:
  InceptionBlock(TensorNames library, int64_t in, const std::vector<BranchShape>& shapes) {
    for (const BranchShape& shape : shapes) {
      Branch& branch = branches_.emplace_back(Branch{shape.pool, {}, {}});
      int64_t channels = in;
      const auto unit = [&](const std::string& name, const InceptionConvolution& of) {
        auto made = std::make_shared<InceptionUnit>(library, channels, of);
        register_part(*this, name, made);
        return made;
      };
      for (size_t i = 0; i < shape.convolutions.size(); ++i) {
        branch.units.push_back(unit(name_of(library, shape, i), shape.convolutions[i]));
        channels = shape.convolutions[i].out;
      }
      char letter = 'a';
      for (const InceptionConvolution& end : shape.split) {
        branch.split.push_back(unit(name_of(library, shape, shape.convolutions.size()) + letter++, end));
      }
      for (const InceptionConvolution& end : shape.split) channels_ += end.out;
      if (shape.split.empty()) channels_ += channels;
    }
  }

  at::Tensor forward(const at::Tensor& x) override {
    std::vector<at::Tensor> outputs;
    for (const Branch& branch : branches_) {
      at::Tensor y = pooled(branch.pool, x);
      for (const auto& unit : branch.units) y = unit->forward(y);
      for (const auto& unit : branch.split) outputs.push_back(unit->forward(y));
      if (branch.split.empty()) outputs.push_back(y);
    }
    return at::cat(outputs, 1);
  }

  /// Channels of the output.
  int64_t channels() const { return channels_; }

 private:
  struct Branch {
    BranchPool pool;
    std::vector<std::shared_ptr<Layer>> units, split;
  };

  static std::string name_of(TensorNames library, const BranchShape& shape, size_t number) {
    const bool is_split = !shape.split.empty();
    if (library == TensorNames::kTorchvision) {
      return shape.convolutions.size() == 1 && !is_split ? shape.name : fmt::format("{}_{}", shape.name, number + 1);
    }
    if (is_split) return fmt::format("{}_{}", shape.name, number);
    const bool is_pooled = shape.pool != BranchPool::kNone;
    if (shape.convolutions.size() == 1 && !is_pooled) return shape.name;
    return fmt::format("{}.{}", shape.name, number + (is_pooled ? 1 : 0));
  }

  static at::Tensor pooled(BranchPool pool, const at::Tensor& x) {
    if (pool == BranchPool::kNone) return x;
    if (pool == BranchPool::kHalving) return at::max_pool2d(x, 3, 2);
    return at::avg_pool2d(x, 3, 1, 1, /*ceil_mode=*/false, /*count_include_pad=*/pool == BranchPool::kMean);
  }

  std::vector<Branch> branches_;
  int64_t channels_ = 0;
};

/// relu(x + scale * conv2d(branches(x))); `conv2d` is a 1x1 convolution.
class ResidualInceptionBlock : public InceptionBlock {
 public:
  ResidualInceptionBlock(int64_t in, double scale, const std::vector<BranchShape>& shapes, bool is_rectified = true)
      : InceptionBlock(TensorNames::kTimm, in, shapes), scale_(scale), is_rectified_(is_rectified) {
    const at::Tensor weight = first_values(TensorNames::kTimm, {in, channels(), 1, 1}, channels());
    const at::Tensor bias = first_values(TensorNames::kTimm, {in}, channels());
    conv2d_ =
        register_module("conv2d", std::make_shared<BiasedConvolution>(weight, bias, ConvolutionGeometry{1, 0, 1}));
  }

  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor y = conv2d_->forward(InceptionBlock::forward(x)) * scale_ + x;
    return is_rectified_ ? rectified(y) : y;
  }

 private:
  double scale_;
  bool is_rectified_;
  std::shared_ptr<Layer> conv2d_;
};

struct InceptionOptions {
  double dropout = 0;

  static config::Keys keys(double usual) { return {dropout_key(&InceptionOptions::dropout, usual)}; }
};

/// Layers one after the other, the means of their output, and a head.
class InceptionNetwork : public Model {
 public:
  at::Tensor features(const at::Tensor& images) override {
    check_shape("images", images.sizes(), {kAnySize, image_channels_, kAnySize, kAnySize});
    return global_average(body_->forward(images));
  }

  ModelOutput classify(const at::Tensor& features) override {
    return (*head_)(is_training() ? randomly_dropped(features, dropout_) : features);
  }

  std::vector<std::vector<std::string>> layers() const override { return layers_; }

 protected:
  InceptionNetwork(TensorNames library, const std::string& name, double dropout, const ModelContext& context)
      : library_(library),
        image_channels_(context.channels),
        channels_(context.channels),
        dropout_(dropout),
        body_(register_module("body", std::make_shared<Stage>())) {
    constexpr int64_t kLeast = 75;  // the halvings leave a pixel
    check_images(std::min(context.height, context.width) >= kLeast, name,
                 fmt::format("images of at least {0}x{0} pixels", kLeast), context);
  }

  // Whether a layer's parameters have a learning rate with those of the layer before it.
  enum class Group { kNew, kSame };

  void unit(const std::string& name, const InceptionConvolution& shape, Group group) {
    add(name, std::make_shared<InceptionUnit>(library_, channels_, shape), shape.out, group);
  }

  void pool(const std::string& name) {
    const auto layer = std::make_shared<MaxPool>(3, 2);
    register_part(*this, name, layer);
    body_->add(layer);
  }

  void block(const std::string& name, const std::vector<BranchShape>& shapes) {
    const auto made = std::make_shared<InceptionBlock>(library_, channels_, shapes);
    add(name, made, made->channels(), Group::kNew);
  }

  void residual(const std::string& name, double scale, const std::vector<BranchShape>& shapes,
                bool is_rectified = true) {
    add(name, std::make_shared<ResidualInceptionBlock>(channels_, scale, shapes, is_rectified), channels_, Group::kNew);
  }

  void head(const std::string& name, const ModelOptions& options, int64_t classes, FirstHead first) {
    head_ = std::make_unique<Heads>(*this, name, options, channels_, classes, first);
  }

 private:
  void add(const std::string& name, const std::shared_ptr<Layer>& layer, int64_t out, Group group) {
    register_part(*this, name, layer);
    body_->add(layer);
    channels_ = out;
    if (group == Group::kNew) layers_.emplace_back();
    layers_.back().push_back(name);
  }

  TensorNames library_;
  int64_t image_channels_, channels_;  // the channels behind the last layer
  double dropout_;
  std::shared_ptr<Stage> body_;  // its layers are registered by their sources' names, not in it
  std::vector<std::vector<std::string>> layers_;
  std::unique_ptr<Heads> head_;
};

/// Without the auxiliary classifier.
///
/// state_dict names: Conv2d_{1a_3x3,2a_3x3,2b_3x3,3b_1x1,4a_3x3}.{conv,bn}, Mixed_{5b..7c}.branchNAME.{conv,bn}, fc.
class InceptionV3 : public InceptionNetwork {
 public:
  InceptionV3(double dropout, const ModelOptions& options, const ModelContext& context)
      : InceptionNetwork(TensorNames::kTorchvision, "inception_v3", dropout, context) {
    using enum BranchPool;
    unit("Conv2d_1a_3x3", halving(32), Group::kNew);
    unit("Conv2d_2a_3x3", {32, 3, 3, 1, false}, Group::kSame);
    unit("Conv2d_2b_3x3", square(64, 3), Group::kSame);
    pool("maxpool1");
    unit("Conv2d_3b_1x1", {80}, Group::kNew);
    unit("Conv2d_4a_3x3", {192, 3, 3, 1, false}, Group::kSame);
    pool("maxpool2");
    for (const auto& [letter, pooled] : {std::pair<char, int64_t>{'b', 32}, {'c', 64}, {'d', 64}}) {
      block(fmt::format("Mixed_5{}", letter), {{"branch1x1", kNone, {{64}}},
                                               {"branch5x5", kNone, {{48}, square(64, 5)}},
                                               {"branch3x3dbl", kNone, {{64}, square(96, 3), square(96, 3)}},
                                               {"branch_pool", kMean, {{pooled}}}});
    }
    block("Mixed_6a", {{"branch3x3", kNone, {halving(384)}},
                       {"branch3x3dbl", kNone, {{64}, square(96, 3), halving(96)}},
                       {"", kHalving, {}}});
    for (const auto& [letter, inner] : {std::pair<char, int64_t>{'b', 128}, {'c', 160}, {'d', 160}, {'e', 192}}) {
      block(fmt::format("Mixed_6{}", letter),
            {{"branch1x1", kNone, {{192}}},
             {"branch7x7", kNone, {{inner}, {inner, 1, 7}, {192, 7, 1}}},
             {"branch7x7dbl", kNone, {{inner}, {inner, 7, 1}, {inner, 1, 7}, {inner, 7, 1}, {192, 1, 7}}},
             {"branch_pool", kMean, {{192}}}});
    }
    block("Mixed_7a", {{"branch3x3", kNone, {{192}, halving(320)}},
                       {"branch7x7x3", kNone, {{192}, {192, 1, 7}, {192, 7, 1}, halving(192)}},
                       {"", kHalving, {}}});
    for (const char* name : {"Mixed_7b", "Mixed_7c"}) {
      block(name, {{"branch1x1", kNone, {{320}}},
                   {"branch3x3", kNone, {{384}}, {{384, 1, 3}, {384, 3, 1}}},
                   {"branch3x3dbl", kNone, {{448}, square(384, 3)}, {{384, 1, 3}, {384, 3, 1}}},
                   {"branch_pool", kMean, {{192}}}});
    }
    head("fc", options, context.num_classes, FirstHead::kWideNormal);
  }

  std::vector<std::string> parts_left_out() const override { return {"AuxLogits"}; }
};

/// state_dict names: features.N.{conv,bn}, features.N.branchNAME.{conv,bn}, last_linear.
class InceptionV4 : public InceptionNetwork {
 public:
  InceptionV4(double dropout, const ModelOptions& options, const ModelContext& context)
      : InceptionNetwork(TensorNames::kTimm, "inception_v4", dropout, context) {
    using enum BranchPool;
    int64_t number = 0;
    const auto name = [&] { return fmt::format("features.{}", number++); };
    unit(name(), halving(32), Group::kNew);
    unit(name(), {32, 3, 3, 1, false}, Group::kSame);
    unit(name(), square(64, 3), Group::kSame);
    block(name(), {{"", kHalving, {}}, {"conv", kNone, {halving(96)}}});
    block(name(), {{"branch0", kNone, {{64}, {96, 3, 3, 1, false}}},
                   {"branch1", kNone, {{64}, {64, 1, 7}, {64, 7, 1}, {96, 3, 3, 1, false}}}});
    block(name(), {{"conv", kNone, {halving(192)}}, {"", kHalving, {}}});
    for (int i = 0; i < 4; ++i) {
      block(name(), {{"branch0", kNone, {{96}}},
                     {"branch1", kNone, {{64}, square(96, 3)}},
                     {"branch2", kNone, {{64}, square(96, 3), square(96, 3)}},
                     {"branch3", kInsideMean, {{96}}}});
    }
    block(name(), {{"branch0", kNone, {halving(384)}},
                   {"branch1", kNone, {{192}, square(224, 3), halving(256)}},
                   {"", kHalving, {}}});
    for (int i = 0; i < 7; ++i) {
      block(name(), {{"branch0", kNone, {{384}}},
                     {"branch1", kNone, {{192}, {224, 1, 7}, {256, 7, 1}}},
                     {"branch2", kNone, {{192}, {192, 7, 1}, {224, 1, 7}, {224, 7, 1}, {256, 1, 7}}},
                     {"branch3", kInsideMean, {{128}}}});
    }
    block(name(), {{"branch0", kNone, {{192}, halving(192)}},
                   {"branch1", kNone, {{256}, {256, 1, 7}, {320, 7, 1}, halving(320)}},
                   {"", kHalving, {}}});
    for (int i = 0; i < 3; ++i) {
      block(name(), {{"branch0", kNone, {{256}}},
                     {"branch1", kNone, {{384}}, {{256, 1, 3}, {256, 3, 1}}},
                     {"branch2", kNone, {{384}, {448, 3, 1}, {512, 1, 3}}, {{256, 1, 3}, {256, 3, 1}}},
                     {"branch3", kInsideMean, {{256}}}});
    }
    head("last_linear", options, context.num_classes, FirstHead::kUniform);
  }
};

/// state_dict names: conv2d_{1a,2a,2b,3b,4a,7b}.{conv,bn}, mixed_{5b,6a,7a}.branchNAME.{conv,bn},
/// {repeat,repeat_1,repeat_2}.N.{branchNAME,conv2d}, block8.{branchNAME,conv2d}, classif.
class InceptionResNetV2 : public InceptionNetwork {
 public:
  InceptionResNetV2(double dropout, const ModelOptions& options, const ModelContext& context)
      : InceptionNetwork(TensorNames::kTimm, "inception_resnet_v2", dropout, context) {
    using enum BranchPool;
    unit("conv2d_1a", halving(32), Group::kNew);
    unit("conv2d_2a", {32, 3, 3, 1, false}, Group::kSame);
    unit("conv2d_2b", square(64, 3), Group::kSame);
    pool("maxpool_3a");
    unit("conv2d_3b", {80}, Group::kNew);
    unit("conv2d_4a", {192, 3, 3, 1, false}, Group::kSame);
    pool("maxpool_5a");
    block("mixed_5b", {{"branch0", kNone, {{96}}},
                       {"branch1", kNone, {{48}, square(64, 5)}},
                       {"branch2", kNone, {{64}, square(96, 3), square(96, 3)}},
                       {"branch3", kInsideMean, {{64}}}});
    for (int i = 0; i < 10; ++i) {
      residual(fmt::format("repeat.{}", i), 0.17,
               {{"branch0", kNone, {{32}}},
                {"branch1", kNone, {{32}, square(32, 3)}},
                {"branch2", kNone, {{32}, square(48, 3), square(64, 3)}}});
    }
    block("mixed_6a", {{"branch0", kNone, {halving(384)}},
                       {"branch1", kNone, {{256}, square(256, 3), halving(384)}},
                       {"", kHalving, {}}});
    for (int i = 0; i < 20; ++i) {
      residual(fmt::format("repeat_1.{}", i), 0.1,
               {{"branch0", kNone, {{192}}}, {"branch1", kNone, {{128}, {160, 1, 7}, {192, 7, 1}}}});
    }
    block("mixed_7a", {{"branch0", kNone, {{256}, halving(384)}},
                       {"branch1", kNone, {{256}, halving(288)}},
                       {"branch2", kNone, {{256}, square(288, 3), halving(320)}},
                       {"", kHalving, {}}});
    const std::vector<BranchShape> last{{"branch0", kNone, {{192}}},
                                        {"branch1", kNone, {{192}, {224, 1, 3}, {256, 3, 1}}}};
    for (int i = 0; i < 9; ++i) residual(fmt::format("repeat_2.{}", i), 0.2, last);
    residual("block8", 1, last, /*is_rectified=*/false);
    unit("conv2d_7b", {1536}, Group::kSame);
    head("classif", options, context.num_classes, FirstHead::kUniform);
  }
};

template <class Network>
ModelEntry inception_entry(const std::string& name, const std::string& title, double dropout,
                           const PretrainedSource& weights) {
  constexpr ModelContext kUsual{1000, 3, 299, 299};
  return {name,
          title,
          InceptionOptions::keys(dropout),
          [](const config::Config& config, const ModelContext& context) {
            return std::make_shared<Network>(config.read<InceptionOptions>("model").dropout,
                                             config.read<ModelOptions>("model"), context);
          },
          kUsual,
          weights};
}

PretrainedSource timm_weights(const std::string& name, double crop_share) {
  return {"timm's " + name, fmt::format("https://huggingface.co/timm/{}/resolve/main/model.safetensors", name), "half",
          "bicubic", crop_share};
}

}  // namespace

std::vector<ModelEntry> inception_entries() {
  PretrainedSource v3 = torchvision_weights("Inception_V3", "inception_v3_google-0cc3c7bd.pth", "bilinear", 299. / 342);
  v3.normalisation = "half";  // torchvision's network makes these of ImageNet's by itself
  return {inception_entry<InceptionV3>(
              "inception_v3",
              "Inception-v3 for images of about 299x299 pixels, torchvision's; no auxiliary classifier.", 0.5, v3),
          inception_entry<InceptionV4>("inception_v4", "Inception-v4 for images of about 299x299 pixels, timm's.", 0,
                                       timm_weights("inception_v4.tf_in1k", 0.875)),
          inception_entry<InceptionResNetV2>("inception_resnet_v2",
                                             "Inception-ResNet-v2 for images of about 299x299 pixels, timm's.", 0,
                                             timm_weights("inception_resnet_v2.tf_in1k", 0.8975))};
}

}  // namespace settrain
