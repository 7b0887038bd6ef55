#include "models/densenet.h"

#include <ATen/ops/max_pool2d.h>
#include <fmt/format.h>

#include <map>
#include <utility>

#include "models/dense_blocks.h"
#include "models/image_size.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

// Everything before the head.
class Features : public Layer {
 public:
  Features(const DenseNetShape& shape, int64_t image_channels) : channels_(shape.first_channels) {
    conv0_ = register_module("conv0", std::make_shared<Convolution>(image_channels, channels_, 7, 2, Fan::kIn));
    norm0_ = register_module("norm0", std::make_shared<BatchNorm>(channels_));
    for (size_t b = 0; b < shape.layers.size(); ++b) {
      add_block(b + 1, shape.layers[b], shape.growth);
      if (b + 1 < shape.layers.size()) add_transition(b + 1);
    }
    add("norm5", std::make_shared<BatchNorm>(channels_));
  }

  at::Tensor forward(const at::Tensor& images) override {
    at::Tensor x = at::max_pool2d(rectified(norm0_->forward(conv0_->forward(images))), 3, 2, 1);
    for (const auto& layer : layers_) x = layer->forward(x);
    return rectified(x);
  }

  int64_t channels() const { return channels_; }

 private:
  void add(const std::string& name, std::shared_ptr<Layer> layer) {
    layers_.push_back(register_module(name, std::move(layer)));
  }

  void add_block(size_t number, int64_t layers, int64_t growth) {
    auto block = std::make_shared<Stage>();
    for (int64_t l = 1; l <= layers; ++l, channels_ += growth) {
      const DenseStyle style{"norm", Fan::kIn};
      block->add(fmt::format("denselayer{}", l), std::make_shared<DenseLayer>(channels_, growth, true, style));
    }
    add(fmt::format("denseblock{}", number), std::move(block));
  }

  void add_transition(size_t number) {
    const auto out = channels_ / 2;
    add(fmt::format("transition{}", number),
        std::make_shared<DenseTransition>(channels_, out, "norm", "conv", Fan::kIn));
    channels_ = out;
  }

  int64_t channels_;  // of the output, once it is built
  std::shared_ptr<Layer> conv0_, norm0_;
  std::vector<std::shared_ptr<Layer>> layers_;
};

}  // namespace

DenseNetShape densenet_shape(int64_t depth) {
  static const std::map<int64_t, DenseNetShape> shapes{{121, {32, 64, {6, 12, 24, 16}}},
                                                       {161, {48, 96, {6, 12, 36, 24}}},
                                                       {169, {32, 64, {6, 12, 32, 32}}},
                                                       {201, {32, 64, {6, 12, 48, 32}}}};
  return shapes.at(depth);
}

DenseNet::DenseNet(const DenseNetShape& shape, const ModelOptions& options, const ModelContext& context)
    : channels_(context.channels) {
  // conv0 and its pool halve upwards, the three transitions downwards: 29 is the least that leaves a pixel.
  check_least_size("this DenseNet", 29, context);
  auto features = std::make_shared<Features>(shape, context.channels);
  const int64_t num_features = features->channels();
  features_ = register_module("features", std::move(features));
  classifier_ =
      std::make_unique<Heads>(*this, "classifier", options, num_features, context.num_classes, FirstHead::kZeroBias);
}

ModelOutput DenseNet::forward(const at::Tensor& images) {
  check_shape("images", images.sizes(), {kAnySize, channels_, kAnySize, kAnySize});
  return (*classifier_)(global_average(features_->forward(images)));
}

}  // namespace settrain
