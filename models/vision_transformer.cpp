// Vision transformers: Dosovitskiy et al., "An Image is Worth 16x16 Words" (2021), table 1; with the parts that DINOv2
// (Oquab et al. 2023), its registers (Darcet et al. 2024) and CLIP (Radford et al. 2021) add.
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/adapters.h"
#include "models/autocast.h"
#include "models/cost.h"
#include "models/entries.h"
#include "models/heads.h"
#include "models/layers.h"
#include "models/model.h"
#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

/// The names of the parts. torchvision has none for registers, for a norm before the blocks and for LayerScale.
struct PartNames {
  const char *class_token, *registers = "", *positions, *patches, *first_norm = "", *blocks;
  const char* block;  // stands before a block's number
  const char *last_norm, *head;
  const char *norm1, *attention, *qkv, *out, *scale1 = "", *norm2, *fc1, *fc2, *scale2 = "";  // in a block
};

constexpr PartNames kTorchvisionParts{.class_token = "class_token",
                                      .positions = "encoder.pos_embedding",
                                      .patches = "conv_proj",
                                      .blocks = "encoder.layers",
                                      .block = "encoder_layer_",
                                      .last_norm = "encoder.ln",
                                      .head = "heads.head",
                                      .norm1 = "ln_1",
                                      .attention = "self_attention",
                                      .qkv = "in_proj",
                                      .out = "out_proj",
                                      .norm2 = "ln_2",
                                      .fc1 = "mlp.0",
                                      .fc2 = "mlp.3"};
constexpr PartNames kTimmParts{.class_token = "cls_token",
                               .registers = "reg_token",
                               .positions = "pos_embed",
                               .patches = "patch_embed.proj",
                               .first_norm = "norm_pre",
                               .blocks = "blocks",
                               .block = "",
                               .last_norm = "norm",
                               .head = "head",
                               .norm1 = "norm1",
                               .attention = "attn",
                               .qkv = "qkv",
                               .out = "proj",
                               .scale1 = "ls1",
                               .norm2 = "norm2",
                               .fc1 = "mlp.fc1",
                               .fc2 = "mlp.fc2",
                               .scale2 = "ls2"};

at::Tensor with_parameter(torch::nn::Module& root, std::string_view name, const at::Tensor& values) {
  const auto [inside, part] = place_of_part(root, name);
  return inside->register_parameter(part, values);
}

/// A linear layer's first weights: torchvision's, uniform within the bound of Glorot and Bengio, or timm's, normal.
at::Tensor first_weight(TensorNames names, int64_t out, int64_t in) {
  constexpr double kTimmDeviation = 0.02;
  if (names == TensorNames::kTimm) return normal_values({out, in}, kTimmDeviation);
  return uniform_values({out, in}, std::sqrt(6.0 / static_cast<double>(out + in)));
}

at::Tensor zeros(int64_t size) {
  return at::zeros(size, CostCounter::device());
}

/// Queries, keys and values: [batch, heads, tokens, features of a head] each.
at::Tensor attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values) {
  if (!queries.is_meta()) return at::scaled_dot_product_attention(queries, keys, values);
  CostCounter::add(2 * queries.numel() * keys.size(2));
  return at::empty_like(queries);
}

/// Attention of every token to all tokens of its image, from [batch, tokens, features] to the same.
///
/// LoRA lies beside the layers that options name, as child `lora` with children of the layers' names.
///
/// A layer from the features to 3 features makes queries, keys and values, in this order. torchvision's names are those
/// of torch.nn.MultiheadAttention: in_proj_weight, in_proj_bias, out_proj; timm's are qkv and proj.
class SelfAttention : public Layer {
 public:
  /// `features` is a multiple of `heads`.
  SelfAttention(int64_t features, int64_t heads, TensorNames names, const PartNames& parts,
                const AdapterOptions& adapter)
      : heads_(heads), qkv_is_module_(names == TensorNames::kTimm) {
    const bool is_timm = names == TensorNames::kTimm;
    const at::Tensor weight = first_weight(names, 3 * features, features), bias = zeros(3 * features);
    qkv_ = std::make_shared<LinearLayer>(weight, bias);
    if (is_timm) {
      register_module(parts.qkv, qkv_);
    } else {
      register_parameter(std::string(parts.qkv) + "_weight", weight);
      register_parameter(std::string(parts.qkv) + "_bias", bias);
    }
    const at::Tensor out = is_timm ? first_weight(names, features, features)
                                   : uniform_values({features, features}, 1 / std::sqrt(static_cast<double>(features)));
    out_ = register_module(parts.out, std::make_shared<LinearLayer>(out, zeros(features)));
    const auto lora = [&](const char* layer, const char* name, int64_t outputs) {
      if (adapter.kind != AdapterOptions::kLora || std::ranges::count(adapter.layers, layer) == 0) {
        return std::shared_ptr<Layer>();
      }
      return register_part(*this, fmt::format("lora.{}", name), lora_layer(features, outputs, adapter));
    };
    qkv_adapter_ = lora(AdapterOptions::kQkv, parts.qkv, 3 * features);
    out_adapter_ = lora(AdapterOptions::kProj, parts.out, features);
  }

  void prepare(InferenceForm form) override {
    Layer::prepare(form);
    if (!qkv_is_module_) qkv_->prepare(form);
  }

  at::Tensor forward(const at::Tensor& x) override { return adapted(seen(x), *out_, out_adapter_); }

  /// added + scale * forward(x), see LinearLayer::scaled_onto(); of a prepared layer without an adapter behind it.
  at::Tensor scaled_onto(const at::Tensor& added, const at::Tensor& x) { return out_->scaled_onto(added, seen(x)); }

  /// The last layer, where nothing is added to its product; null with an adapter.
  LinearLayer* last_layer() const { return out_adapter_ ? nullptr : out_.get(); }

 private:
  /// What the tokens see of each other: [batch, tokens, features].
  at::Tensor seen(const at::Tensor& x) {
    const int64_t batch = x.size(0), tokens = x.size(1), features = x.size(2);
    // [queries or keys or values, batch, heads, tokens, features of a head]
    const at::Tensor qkv =
        adapted(x, *qkv_, qkv_adapter_).view({batch, tokens, 3, heads_, features / heads_}).permute({2, 0, 3, 1, 4});
    return attention(qkv[0], qkv[1], qkv[2]).transpose(1, 2).reshape({batch, tokens, features});
  }

  static at::Tensor adapted(const at::Tensor& x, Layer& layer, const std::shared_ptr<Layer>& adapter) {
    const at::Tensor y = layer.forward(x);
    return adapter ? y + adapter->forward(x) : y;
  }

  int64_t heads_;
  bool qkv_is_module_;  // in torchvision's networks its weights are this layer's own
  std::shared_ptr<LinearLayer> qkv_, out_;
  std::shared_ptr<Layer> qkv_adapter_, out_adapter_;  // may be null
};

/// Every feature times a factor of its own: LayerScale of Touvron et al., "Going deeper with Image Transformers"
/// (2021).
///
/// Names: gamma [features].
class LayerScale : public Layer {
 public:
  LayerScale(int64_t features, double first)
      : gamma_(register_parameter("gamma", at::full(features, first, CostCounter::device()))) {}

  at::Tensor forward(const at::Tensor& x) override { return x * gamma_; }
  const at::Tensor& gamma() const { return gamma_; }

 private:
  at::Tensor gamma_;
};

/// x sigmoid(1.702 x), which approximates GELU: OpenAI trained CLIP with it.
at::Tensor quick_gelu(const at::Tensor& x) {
  return x * at::sigmoid(1.702 * x);
}

/// Small numbers that differ between networks.
struct BlockOptions {
  double norm_epsilon;
  VisionTransformerOptions::Activation activation;
  double skipped;  // the probability that an image skips a branch in training
};

/// The block of Vaswani et al., "Attention Is All You Need" (2017), with the norms first: y = x + attention(norm(x)),
/// then y + MLP(norm(y)); the MLP has 4 `features` hidden units. Where there is LayerScale, it scales
/// what is added, and in training either is skipped at random (stochastic depth). AdaptFormer, as child `adaptformer`,
/// sees what the MLP sees, and belongs to its branch.
class TransformerBlock : public Layer {
 public:
  TransformerBlock(const VisionTransformerShape& shape, const PartNames& parts, const BlockOptions& options,
                   const AdapterOptions& adapter)
      : options_(options) {
    constexpr int64_t kHidden = 4;
    const int64_t features = shape.features;
    const auto norm = [&](const char* name) {
      return register_part(*this, name, std::make_shared<LayerNorm>(features, options.norm_epsilon));
    };
    const auto scale = [&](const char* name) {
      if (shape.layer_scale == 0) return std::shared_ptr<LayerScale>();
      auto layer = std::make_shared<LayerScale>(features, shape.layer_scale);
      register_part(*this, name, layer);
      return layer;
    };
    const auto mlp_layer = [&](const char* name, int64_t in, int64_t out) {
      // The bias is drawn first, so that a seed gives the weights that it has always given.
      const at::Tensor bias = shape.names == TensorNames::kTimm ? zeros(out) : normal_values({out}, 1e-6);
      const at::Tensor weight = first_weight(shape.names, out, in);
      auto layer = std::make_shared<LinearLayer>(weight, bias);
      register_part(*this, name, layer);
      return layer;
    };
    norm1_ = norm(parts.norm1);
    attention_ = std::make_shared<SelfAttention>(features, shape.heads, shape.names, parts, adapter);
    register_part(*this, parts.attention, attention_);
    scale1_ = scale(parts.scale1);
    norm2_ = norm(parts.norm2);
    fc1_ = mlp_layer(parts.fc1, features, kHidden * features);
    fc2_ = mlp_layer(parts.fc2, kHidden * features, features);
    scale2_ = scale(parts.scale2);
    if (adapter.kind == AdapterOptions::kAdaptFormer) {
      adapter_ = register_module("adaptformer", adaptformer_layer(features, adapter));
    }
    if (scale1_ && attention_->last_layer()) attention_->last_layer()->set_scale(scale1_->gamma());
    if (scale2_) fc2_->set_scale(scale2_->gamma());
  }

  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor seen = norm1_->forward(x);
    const at::Tensor y = is_prepared() && attention_->last_layer()
                             ? attention_->scaled_onto(x, seen)
                             : x + skipped(scaled(attention_->forward(seen), scale1_));
    const at::Tensor normed = norm2_->forward(y);
    const at::Tensor hidden = options_.activation == VisionTransformerOptions::kGelu
                                  ? fc1_->forward_into(Activation::kGelu, normed)
                                  : quick_gelu(fc1_->forward(normed));
    if (is_prepared()) {
      const at::Tensor z = fc2_->scaled_onto(y, hidden);
      return adapter_ ? z + adapter_->forward(normed) : z;
    }
    const at::Tensor branch = scaled(fc2_->forward(hidden), scale2_);
    return y + skipped(adapter_ ? branch + adapter_->forward(normed) : branch);
  }

 private:
  static at::Tensor scaled(const at::Tensor& x, const std::shared_ptr<LayerScale>& scale) {
    return scale ? scale->forward(x) : x;
  }

  at::Tensor skipped(const at::Tensor& branch) const {
    return is_training() ? drop_path(branch, options_.skipped) : branch;
  }

  BlockOptions options_;
  std::shared_ptr<Layer> norm1_, norm2_, adapter_;  // the adapter may be null
  std::shared_ptr<SelfAttention> attention_;
  std::shared_ptr<LinearLayer> fc1_, fc2_;
  std::shared_ptr<LayerScale> scale1_, scale2_;  // may be null
};

/// A token for every patch of the image, from [batch, channels, height, width] to [batch, tokens, features].
class Patches : public Convolution {
 public:
  /// `bias` may be undefined.
  Patches(const at::Tensor& weight, const at::Tensor& bias) : Convolution(weight, {weight.size(2), 0, 1}, bias) {}

  at::Tensor forward(const at::Tensor& x) override { return Convolution::forward(x).flatten(2).transpose(1, 2); }
};

std::shared_ptr<Layer> make_patches(const VisionTransformerShape& shape, int64_t channels) {
  const double bound = 1 / std::sqrt(static_cast<double>(channels * shape.patch * shape.patch));
  const std::vector<int64_t> sizes{shape.features, channels, shape.patch, shape.patch};
  if (shape.names == TensorNames::kTimm) {
    const at::Tensor weight = uniform_values(sizes, bound);
    return std::make_shared<Patches>(weight, shape.ln_pre ? at::Tensor() : uniform_values({shape.features}, bound));
  }
  // torchvision cuts off the normal values at 2, some fifty standard deviations.
  const at::Tensor weight = normal_values(sizes, bound);
  return std::make_shared<Patches>(weight, shape.ln_pre ? at::Tensor() : zeros(shape.features));
}

/// Blocks on tokens: one for the class, registers, and one for every patch of the image. The head sees the class'
/// token, the mean of the patches', or both. Position embeddings are added to the tokens, so the model is for images of
/// the size that it was built with. With registers the class' token has none, as in timm.
///
/// state_dict names, torchvision's: class_token, conv_proj, encoder.pos_embedding,
/// encoder.layers.encoder_layer_B.{ln_1,self_attention,ln_2,mlp.{0,3}}, encoder.ln, heads.head; timm's: cls_token,
/// reg_token, pos_embed, patch_embed.proj, norm_pre, blocks.B.{norm1,attn.{qkv,proj},ls1,norm2,mlp.{fc1,fc2},ls2},
/// norm, head; and OpenCLIP's proj [features, projected].
class VisionTransformer : public Model {
 public:
  VisionTransformer(const VisionTransformerShape& shape, const VisionTransformerOptions& parts,
                    const ModelOptions& options, const ModelContext& context)
      : names_(shape.names == TensorNames::kTimm ? kTimmParts : kTorchvisionParts),
        image_channels_(context.channels),
        height_(context.height),
        width_(context.width),
        patch_(shape.patch),
        registers_(shape.registers),
        pooling_(parts.pooling) {
    check_images(std::min(height_, width_) > 0 && height_ % shape.patch == 0 && width_ % shape.patch == 0,
                 "this vision transformer",
                 fmt::format("images whose height and width are a multiple of {} pixels", shape.patch), context);
    const bool is_timm = shape.names == TensorNames::kTimm;
    constexpr double kPositionDeviation = 0.02, kTokenDeviation = 1e-6;
    const auto tokens = [&](int64_t number) {
      const std::vector<int64_t> sizes{1, number, shape.features};
      return is_timm ? normal_values(sizes, kTokenDeviation) : at::zeros(sizes, CostCounter::device());
    };
    if (shape.class_token) class_token_ = with_parameter(*this, names_.class_token, tokens(1));
    if (registers_ > 0) register_tokens_ = with_parameter(*this, names_.registers, tokens(registers_));
    patches_ = register_part(*this, names_.patches, make_patches(shape, image_channels_));
    const int64_t num_patches = height_ / patch_ * (width_ / patch_);
    class_has_position_ = shape.class_token && registers_ == 0;
    positions_name_ = names_.positions;
    positions_ =
        with_parameter(*this, names_.positions,
                       normal_values({1, num_patches + class_has_position_, shape.features}, kPositionDeviation));

    const double epsilon = shape.ln_pre ? 1e-5 : 1e-6;  // CLIP's and the others'
    const auto norm = [&](const char* name) {
      return register_part(*this, name, std::make_shared<LayerNorm>(shape.features, epsilon));
    };
    if (shape.ln_pre) first_norm_ = norm(names_.first_norm);
    auto blocks = std::make_shared<Stage>();
    for (int64_t b = 0; b < shape.blocks; ++b) {
      const double depth = static_cast<double>(b) / static_cast<double>(std::max<int64_t>(shape.blocks - 1, 1));
      const BlockOptions block{epsilon, parts.activation, parts.stochastic_depth * depth};
      blocks->add(fmt::format("{}{}", names_.block, b),
                  std::make_shared<TransformerBlock>(shape, names_, block, parts.adapter));
    }
    blocks_ = register_part(*this, names_.blocks, std::move(blocks));
    last_norm_ = norm(names_.last_norm);

    int64_t features = pooling_ == VisionTransformerOptions::kBoth ? 2 * shape.features : shape.features;
    if (parts.projection) {
      const double deviation = 1 / std::sqrt(static_cast<double>(shape.features));
      projection_ = register_parameter("proj", normal_values({features, shape.projected}, deviation));
      features = shape.projected;
    }
    const auto [inside, head] = place_of_part(*this, names_.head);
    head_ = std::make_unique<Heads>(*inside, head, options, features, context.num_classes,
                                    is_timm ? FirstHead::kNormal : FirstHead::kZero);
  }

  at::Tensor features(const at::Tensor& images) override {
    check_shape("images", images.sizes(), {kAnySize, image_channels_, height_, width_});
    const at::Tensor tokens = with_positions(patches_->forward(images));
    return projected(pooled(blocks_->forward(first_norm_ ? first_norm_->forward(tokens) : tokens)));
  }

  ModelOutput classify(const at::Tensor& features) override { return (*head_)(features); }

  std::optional<PatchGrid> patch_grid() const override {
    return PatchGrid{positions_name_,      patch_, height_ / patch_, width_ / patch_, class_has_position_,
                     projection_.defined()};
  }

  // As timm: each block, the last one with the norm after it.
  std::vector<std::vector<std::string>> layers() const override {
    std::vector<std::vector<std::string>> all{
        {names_.class_token, names_.registers, names_.positions, names_.patches, names_.first_norm}};
    std::erase(all.front(), "");  // torchvision has no names of some parts
    for (const auto& block : blocks_->named_children())
      all.push_back({fmt::format("{}.{}", names_.blocks, block.key())});
    all.back().push_back(names_.last_norm);
    return all;
  }

 private:
  at::Tensor with_positions(const at::Tensor& patches) const {
    std::vector<at::Tensor> tokens;
    for (const at::Tensor& token : {class_token_, register_tokens_}) {
      if (token.defined()) tokens.push_back(token.expand({patches.size(0), -1, -1}));
    }
    if (tokens.empty()) return patches + positions_;
    tokens.push_back(class_has_position_ ? patches : patches + positions_);
    const at::Tensor all = at::cat(tokens, 1);
    return class_has_position_ ? all + positions_ : all;
  }

  /// Makes what the head sees, in the weights' precision like the head. The last norm is of each token by itself.
  at::Tensor pooled(const at::Tensor& tokens) const {
    const auto normed = [&](const at::Tensor& some) { return last_norm_->forward(some.to(positions_.scalar_type())); };
    if (pooling_ == VisionTransformerOptions::kToken) return normed(tokens.select(1, 0));
    const at::Tensor patches = normed(tokens.slice(1, class_token_.defined() + registers_)).mean(1);
    return pooling_ == VisionTransformerOptions::kMean ? patches : at::cat({normed(tokens.select(1, 0)), patches}, 1);
  }

  at::Tensor projected(const at::Tensor& features) const {
    if (!projection_.defined()) return features;
    if (features.is_meta()) CostCounter::add(projection_.numel(), projection_);
    const Autocast exact(features.device().type(), false);
    return at::matmul(features, projection_);
  }

  const PartNames& names_;
  int64_t image_channels_, height_, width_, patch_, registers_;
  VisionTransformerOptions::Pooling pooling_;
  bool class_has_position_;
  std::string positions_name_;
  at::Tensor class_token_, register_tokens_, positions_, projection_;  // undefined where there are none
  std::shared_ptr<Layer> patches_, first_norm_, blocks_, last_norm_;   // `first_norm_` may be null
  std::unique_ptr<Heads> head_;
};

}  // namespace

std::shared_ptr<Model> make_vision_transformer(const VisionTransformerShape& shape,
                                               const VisionTransformerOptions& parts, const ModelOptions& options,
                                               const ModelContext& context) {
  if (shape.features % shape.heads != 0) {
    throw KeyError("model.heads",
                   fmt::format("{} heads do not share {} features equally (model.width)", shape.heads, shape.features));
  }
  if (!shape.class_token && parts.pooling != VisionTransformerOptions::kMean) {
    throw KeyError("model.pooling", "needs model.class_token: true, unless it is mean");
  }
  return std::make_shared<VisionTransformer>(shape, parts, options, context);
}

}  // namespace settrain
