#include "models/convnext.h"

#include <string>
#include <utility>

#include "models/biased_layers.h"
#include "models/convnext_block.h"
#include "models/image_size.h"
#include "models/layer_norm.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

// Of patches of size x size pixels, side by side.
std::shared_ptr<Layer> patches(int64_t in, int64_t out, int64_t size) {
  return std::make_shared<BiasedConvolution>(normal_values({out, in, size, size}, kConvNextDeviation),
                                             ConvolutionGeometry{size, 0, 1});
}

}  // namespace

config::Keys ConvNextOptions::keys() {
  return {config::key("stochastic_depth", &ConvNextOptions::stochastic_depth, 0.1,
                      "Probability that an image skips the last block in training; it rises linearly from 0 at the "
                      "first block.")
              .at_least(0)
              .below(1)};
}

ConvNext::ConvNext(const ConvNextShape& shape, double stochastic_depth, const ModelOptions& options,
                   const ModelContext& context)
    : channels_(context.channels) {
  check_least_size("ConvNeXt", 32, context);
  auto features = register_module("features", std::make_shared<torch::nn::Module>());
  const auto add = [this](torch::nn::Module& part, const std::string& name, std::shared_ptr<Layer> layer) {
    features_.push_back(part.register_module(name, std::move(layer)));
  };
  const auto add_part = [&features] {
    return features->register_module(std::to_string(features->children().size()),
                                     std::make_shared<torch::nn::Module>());
  };
  int64_t num_blocks = 0;
  for (const int64_t blocks : shape.blocks) num_blocks += blocks;
  int64_t channels = context.channels, block = 0;
  for (size_t s = 0; s < shape.blocks.size(); ++s) {
    const auto between = add_part();
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
    add(*features, std::to_string(features->children().size()), std::move(stage));
  }
  auto classifier = register_module("classifier", std::make_shared<torch::nn::Module>());
  norm_ = classifier->register_module("0", std::make_shared<LayerNorm>(channels));
  classifier_ = std::make_unique<Heads>(*classifier, "2", options, channels, context.num_classes, FirstHead::kNormal);
}

ModelOutput ConvNext::forward(const at::Tensor& images) {
  check_shape("images", images.sizes(), {kAnySize, channels_, kAnySize, kAnySize});
  at::Tensor x = images;
  for (const auto& layer : features_) x = layer->forward(x);
  return (*classifier_)(norm_->forward(global_average(x)));
}

}  // namespace settrain
