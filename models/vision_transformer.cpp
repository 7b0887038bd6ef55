// Vision transformers, as torchvision's: Dosovitskiy et al., "An Image is Worth 16x16 Words" (2021), table 1.
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <cmath>
#include <memory>
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

/// Uniform weights within the bound of Glorot and Bengio.
at::Tensor glorot_values(int64_t out, int64_t in) {
  return uniform_values({out, in}, std::sqrt(6.0 / static_cast<double>(out + in)));
}

/// Queries, keys and values: [batch, heads, tokens, features of a head] each.
at::Tensor attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values) {
  if (!queries.is_meta()) return at::scaled_dot_product_attention(queries, keys, values);
  CostCounter::add(2 * queries.numel() * keys.size(2));
  return at::empty_like(queries);
}

/// Attention of every token to all tokens of its image, from [batch, tokens, features] to the same.
///
/// Names, those of torch.nn.MultiheadAttention: in_proj_weight [3 features, features], in_proj_bias, of queries, keys
/// and values in this order; out_proj.
class SelfAttention : public Layer {
 public:
  /// `features` is a multiple of `heads`.
  SelfAttention(int64_t features, int64_t heads)
      : heads_(heads),
        in_proj_weight_(register_parameter("in_proj_weight", glorot_values(3 * features, features))),
        in_proj_bias_(register_parameter("in_proj_bias", at::zeros(3 * features, CostCounter::device()))),
        out_proj_(register_module(
            "out_proj", std::make_shared<LinearLayer>(
                            uniform_values({features, features}, 1 / std::sqrt(static_cast<double>(features))),
                            at::zeros(features, CostCounter::device())))) {}

  at::Tensor forward(const at::Tensor& x) override {
    const int64_t batch = x.size(0), tokens = x.size(1), features = x.size(2);
    // [queries or keys or values, batch, heads, tokens, features of a head]
    const at::Tensor packed = linear_map(x, in_proj_weight_, in_proj_bias_)
                                  .view({batch, tokens, 3, heads_, features / heads_})
                                  .permute({2, 0, 3, 1, 4});
    const at::Tensor seen = attention(packed[0], packed[1], packed[2]);
    return out_proj_->forward(seen.transpose(1, 2).reshape({batch, tokens, features}));
  }

 private:
  int64_t heads_;
  at::Tensor in_proj_weight_, in_proj_bias_;
  std::shared_ptr<Layer> out_proj_;
};

/// The block of Vaswani et al., "Attention Is All You Need" (2017), with the norms first: y = x + attention(norm(x)),
/// then y + perceptron(norm(y)); the perceptron has 4 `features` hidden units with GELU.
///
/// Names: ln_1, self_attention, ln_2, mlp.{0,3}.
class TransformerBlock : public Layer {
 public:
  TransformerBlock(int64_t features, int64_t heads)
      : norm1_(register_module("ln_1", std::make_shared<LayerNorm>(features))),
        attention_(register_module("self_attention", std::make_shared<SelfAttention>(features, heads))),
        norm2_(register_module("ln_2", std::make_shared<LayerNorm>(features))) {
    constexpr int64_t kHidden = 4;
    auto perceptron = register_module("mlp", std::make_shared<torch::nn::Module>());
    const auto layer = [](int64_t in, int64_t out) {
      return std::make_shared<LinearLayer>(glorot_values(out, in), normal_values({out}, 1e-6));
    };
    widen_ = perceptron->register_module("0", layer(features, kHidden * features));
    narrow_ = perceptron->register_module("3", layer(kHidden * features, features));
  }

  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor y = attention_->forward(norm1_->forward(x)) + x;
    return y + narrow_->forward(at::gelu(widen_->forward(norm2_->forward(y))));
  }

 private:
  std::shared_ptr<Layer> norm1_, attention_, norm2_, widen_, narrow_;
};

/// A token for every patch of the image and one for its class, which the head sees after the blocks. Tokens know their
/// places by an embedding, so the model is for images of the size that it was built with.
///
/// state_dict names: class_token, conv_proj, encoder.pos_embedding,
/// encoder.layers.encoder_layer_B.{ln_1,self_attention,ln_2,mlp.{0,3}}, encoder.ln, heads.head.
class VisionTransformer : public Model {
 public:
  VisionTransformer(const VisionTransformerShape& shape, const ModelOptions& options, const ModelContext& context)
      : image_channels_(context.channels), size_(context.height) {
    check_images(context.height == context.width && size_ > 0 && size_ % shape.patch == 0, "this vision transformer",
                 fmt::format("square images whose side is a multiple of {} pixels", shape.patch), context);
    class_token_ = register_parameter("class_token", at::zeros({1, 1, shape.features}, CostCounter::device()));
    // torchvision cuts off the normal values at 2, some fifty standard deviations.
    const auto inputs = static_cast<double>(image_channels_ * shape.patch * shape.patch);
    const at::Tensor weight =
        normal_values({shape.features, image_channels_, shape.patch, shape.patch}, 1 / std::sqrt(inputs));
    conv_proj_ = register_module("conv_proj",
                                 std::make_shared<BiasedConvolution>(weight, ConvolutionGeometry{shape.patch, 0, 1}));

    auto encoder = register_module("encoder", std::make_shared<torch::nn::Module>());
    const int64_t across = size_ / shape.patch;
    pos_embedding_ =
        encoder->register_parameter("pos_embedding", normal_values({1, across * across + 1, shape.features}, 0.02));
    auto layers = std::make_shared<Stage>();
    for (int64_t b = 0; b < shape.blocks; ++b) {
      layers->add(fmt::format("encoder_layer_{}", b), std::make_shared<TransformerBlock>(shape.features, shape.heads));
    }
    layers_ = encoder->register_module("layers", std::move(layers));
    norm_ = encoder->register_module("ln", std::make_shared<LayerNorm>(shape.features));

    auto heads = register_module("heads", std::make_shared<torch::nn::Module>());
    heads_ = std::make_unique<Heads>(*heads, "head", options, shape.features, context.num_classes, FirstHead::kZero);
  }

  ModelOutput forward(const at::Tensor& images) override {
    check_shape("images", images.sizes(), {kAnySize, image_channels_, size_, size_});
    const at::Tensor patches = conv_proj_->forward(images).flatten(2).transpose(1, 2);
    const at::Tensor tokens = at::cat({class_token_.expand({images.size(0), -1, -1}), patches}, 1) + pos_embedding_;
    // The last norm is of each token by itself: the class' is enough, in the weights' precision like the head.
    const at::Tensor of_class = layers_->forward(tokens).select(1, 0).to(class_token_.scalar_type());
    return (*heads_)(norm_->forward(of_class));
  }

  // As timm: each block, the last one with the norm after it.
  std::vector<std::vector<std::string>> layers() const override {
    std::vector<std::vector<std::string>> all{{"class_token", "conv_proj", "encoder.pos_embedding"}};
    for (const auto& block : layers_->named_children()) all.push_back({"encoder.layers." + block.key()});
    all.back().push_back("encoder.ln");
    return all;
  }

 private:
  int64_t image_channels_, size_;
  at::Tensor class_token_, pos_embedding_;
  std::shared_ptr<Layer> conv_proj_, layers_, norm_;
  std::unique_ptr<Heads> heads_;
};

}  // namespace

std::shared_ptr<Model> make_vision_transformer(const VisionTransformerShape& shape, const ModelOptions& options,
                                               const ModelContext& context) {
  return std::make_shared<VisionTransformer>(shape, options, context);
}

ModelEntry vit_b_16_entry() {
  return {"vit_b_16",
          "ViT-B/16 for square images whose side is a multiple of 16 pixels, best 224, torchvision's.",
          {},
          [](const config::Config& config, const ModelContext& context) {
            return make_vision_transformer({16, 12, 768, 12}, config.read<ModelOptions>("model"), context);
          },
          kImageNet,
          torchvision_weights("ViT_B_16", "vit_b_16-c867db91.pth")};
}

}  // namespace settrain
