// Blocks of transformers: Vaswani et al., "Attention Is All You Need" (2017), with the norms first.
#pragma once

#include <memory>

#include "models/layers.h"

namespace settrain {

/// Attention of every token to all tokens of its image, from [batch, tokens, features] to the same.
///
/// Names, those of torch.nn.MultiheadAttention: in_proj_weight [3 features, features], in_proj_bias, of queries, keys
/// and values in this order; out_proj.
class SelfAttention : public Layer {
 public:
  /// `features` is a multiple of `heads`.
  SelfAttention(int64_t features, int64_t heads);
  at::Tensor forward(const at::Tensor& x) override;

 private:
  int64_t heads_;
  at::Tensor in_proj_weight_, in_proj_bias_;
  std::shared_ptr<Layer> out_proj_;
};

/// y = x + attention(norm(x)), then y + perceptron(norm(y)); the perceptron has 4 `features` hidden units with GELU.
///
/// Names: ln_1, self_attention, ln_2, mlp.{0,3}.
class TransformerBlock : public Layer {
 public:
  TransformerBlock(int64_t features, int64_t heads);
  at::Tensor forward(const at::Tensor& x) override;

 private:
  std::shared_ptr<Layer> norm1_, attention_, norm2_, widen_, narrow_;
};

}  // namespace settrain
