#include "models/vision_transformer.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <string>
#include <utility>

#include "models/biased_layers.h"
#include "models/cost.h"
#include "models/image_size.h"
#include "models/layer_norm.h"
#include "models/transformer_block.h"
#include "src/core/shape.h"

namespace settrain {

VisionTransformer::VisionTransformer(const VisionTransformerShape& shape, const ModelOptions& options,
                                     const ModelContext& context)
    : channels_(context.channels), size_(context.height) {
  check_square_of_patches("this vision transformer", shape.patch, context);
  class_token_ = register_parameter("class_token", at::zeros({1, 1, shape.features}, CostCounter::device()));
  // torchvision cuts off the normal values at 2, some fifty standard deviations.
  const auto inputs = static_cast<double>(channels_ * shape.patch * shape.patch);
  const at::Tensor weight = normal_values({shape.features, channels_, shape.patch, shape.patch}, 1 / std::sqrt(inputs));
  conv_proj_ =
      register_module("conv_proj", std::make_shared<BiasedConvolution>(weight, ConvolutionGeometry{shape.patch, 0, 1}));

  auto encoder = register_module("encoder", std::make_shared<torch::nn::Module>());
  const int64_t across = size_ / shape.patch;
  pos_embedding_ =
      encoder->register_parameter("pos_embedding", normal_values({1, across * across + 1, shape.features}, 0.02));
  auto layers = std::make_shared<Stage>();
  for (int64_t b = 0; b < shape.blocks; ++b) {
    layers->add("encoder_layer_" + std::to_string(b), std::make_shared<TransformerBlock>(shape.features, shape.heads));
  }
  layers_ = encoder->register_module("layers", std::move(layers));
  norm_ = encoder->register_module("ln", std::make_shared<LayerNorm>(shape.features));

  auto heads = register_module("heads", std::make_shared<torch::nn::Module>());
  heads_ = std::make_unique<Heads>(*heads, "head", options, shape.features, context.num_classes, FirstHead::kZero);
}

ModelOutput VisionTransformer::forward(const at::Tensor& images) {
  check_shape("images", images.sizes(), {kAnySize, channels_, size_, size_});
  const at::Tensor patches = conv_proj_->forward(images).flatten(2).transpose(1, 2);
  const at::Tensor tokens = at::cat({class_token_.expand({images.size(0), -1, -1}), patches}, 1) + pos_embedding_;
  // The last norm is of each token by itself: the class' is enough, in the weights' precision like the head.
  const at::Tensor of_class = layers_->forward(tokens).select(1, 0).to(class_token_.scalar_type());
  return (*heads_)(norm_->forward(of_class));
}

}  // namespace settrain
