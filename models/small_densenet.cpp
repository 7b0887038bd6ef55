#include "models/small_densenet.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "models/dense_blocks.h"
#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

constexpr int64_t kSize = 32, kBlocks = 3;

// There for the sake of names: the published code has the layers of a block under `layer`.
class Block : public Layer {
 public:
  explicit Block(std::shared_ptr<Stage> layers) : layers_(register_module("layer", std::move(layers))) {}
  at::Tensor forward(const at::Tensor& x) override { return layers_->forward(x); }

 private:
  std::shared_ptr<Stage> layers_;
};

int64_t layers_of_a_block(int64_t depth, bool bc) {
  const int64_t per_layer = kBlocks * (bc ? 2 : 1), layers = (depth - 4) / per_layer;
  if (depth != per_layer * layers + 4) {
    throw KeyError("model.depth",
                   fmt::format("{} gives no whole number of layers: {} n + 4 is wanted, such as {} or {}", depth,
                               per_layer, per_layer * std::max<int64_t>(layers, 1) + 4, per_layer * (layers + 1) + 4));
  }
  return layers;
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

config::Keys SmallDenseNetOptions::keys() {
  return {config::key("bc", &SmallDenseNetOptions::bc, true,
                      "DenseNet-BC: 1x1 bottlenecks, and transitions that halve the channels.")};
}

SmallDenseNet::SmallDenseNet(const SmallDenseNetShape& shape, bool bc, const ModelOptions& options,
                             const ModelContext& context)
    : channels_(context.channels) {
  if (context.height != kSize || context.width != kSize) {
    throw KeyError("model.name", fmt::format("this DenseNet takes images of {0}x{0} pixels, the data's are {1}x{2}",
                                             kSize, context.height, context.width));
  }
  const auto add = [this](const std::string& name, std::shared_ptr<Layer> layer) {
    layers_.push_back(register_module(name, std::move(layer)));
  };
  const int64_t layers = layers_of_a_block(shape.depth, bc);
  int64_t channels = 2 * shape.growth;
  add("conv1", std::make_shared<Convolution>(context.channels, channels, 3));
  for (int64_t b = 1; b <= kBlocks; ++b) {
    auto in_block = std::make_shared<Stage>();
    for (int64_t l = 0; l < layers; ++l, channels += shape.growth) {
      const DenseStyle style{"bn", Fan::kOut};
      in_block->add(std::to_string(l), std::make_shared<DenseLayer>(channels, shape.growth, bc, style));
    }
    add(fmt::format("block{}", b), std::make_shared<Block>(std::move(in_block)));
    if (b == kBlocks) break;
    const int64_t out = bc ? channels / 2 : channels;
    add(fmt::format("trans{}", b), std::make_shared<DenseTransition>(channels, out, "bn1", "conv1", Fan::kOut));
    channels = out;
  }
  add("bn1", std::make_shared<BatchNorm>(channels));
  heads_ = std::make_unique<Heads>(*this, "fc", options, channels, context.num_classes, FirstHead::kZeroBias);
}

ModelOutput SmallDenseNet::forward(const at::Tensor& images) {
  check_shape("images", images.sizes(), {kAnySize, channels_, kSize, kSize});
  at::Tensor x = images;
  for (const auto& layer : layers_) x = layer->forward(x);
  return (*heads_)(global_average(rectified(x)));
}

}  // namespace settrain
