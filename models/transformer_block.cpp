#include "models/transformer_block.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "models/biased_layers.h"
#include "models/cost.h"
#include "models/layer_norm.h"

namespace settrain {
namespace {

// Glorot and Bengio's bound.
at::Tensor glorot_values(int64_t out, int64_t in) {
  return uniform_values({out, in}, std::sqrt(6.0 / static_cast<double>(out + in)));
}

std::shared_ptr<Layer> perceptron_layer_of_block(int64_t in, int64_t out) {
  return std::make_shared<LinearLayer>(glorot_values(out, in), normal_values({out}, 1e-6));
}

// Of [batch, heads, tokens, features of a head] each.
at::Tensor attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values) {
  if (!queries.is_meta()) return at::scaled_dot_product_attention(queries, keys, values);
  CostCounter::add(2 * queries.numel() * keys.size(2));
  return at::empty_like(queries);
}

}  // namespace

SelfAttention::SelfAttention(int64_t features, int64_t heads)
    : heads_(heads),
      in_proj_weight_(register_parameter("in_proj_weight", glorot_values(3 * features, features))),
      in_proj_bias_(register_parameter("in_proj_bias", at::zeros(3 * features, CostCounter::device()))),
      out_proj_(register_module("out_proj",
                                std::make_shared<LinearLayer>(
                                    uniform_values({features, features}, 1 / std::sqrt(static_cast<double>(features))),
                                    at::zeros(features, CostCounter::device())))) {}

at::Tensor SelfAttention::forward(const at::Tensor& x) {
  const int64_t batch = x.size(0), tokens = x.size(1), features = x.size(2);
  // [queries or keys or values, batch, heads, tokens, features of a head]
  const at::Tensor packed = linear_map(x, in_proj_weight_, in_proj_bias_)
                                .view({batch, tokens, 3, heads_, features / heads_})
                                .permute({2, 0, 3, 1, 4});
  const at::Tensor seen = attention(packed[0], packed[1], packed[2]);
  return out_proj_->forward(seen.transpose(1, 2).reshape({batch, tokens, features}));
}

TransformerBlock::TransformerBlock(int64_t features, int64_t heads)
    : norm1_(register_module("ln_1", std::make_shared<LayerNorm>(features))),
      attention_(register_module("self_attention", std::make_shared<SelfAttention>(features, heads))),
      norm2_(register_module("ln_2", std::make_shared<LayerNorm>(features))) {
  constexpr int64_t kHidden = 4;
  auto perceptron = register_module("mlp", std::make_shared<torch::nn::Module>());
  widen_ = perceptron->register_module("0", perceptron_layer_of_block(features, kHidden * features));
  narrow_ = perceptron->register_module("3", perceptron_layer_of_block(kHidden * features, features));
}

at::Tensor TransformerBlock::forward(const at::Tensor& x) {
  const at::Tensor y = attention_->forward(norm1_->forward(x)) + x;
  return y + narrow_->forward(at::gelu(widen_->forward(norm2_->forward(y))));
}

}  // namespace settrain
