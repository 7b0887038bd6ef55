// Layer normalisation.
#pragma once

#include "models/layers.h"

namespace settrain {

/// Values [..., features] brought to mean 0 and variance 1 along the features: eps 1e-6, as in torchvision's networks.
/// `weight` starts at 1, `bias` at 0.
class LayerNorm : public Layer {
 public:
  explicit LayerNorm(int64_t features);
  at::Tensor forward(const at::Tensor& x) override;

 private:
  at::Tensor weight_, bias_;
};

/// The same along the channels of every pixel.
class ChannelNorm : public LayerNorm {
 public:
  using LayerNorm::LayerNorm;
  at::Tensor forward(const at::Tensor& x) override;
};

/// [batch, channels, height, width] with the channels last, and back: the memory stays as it is.
at::Tensor with_channels_last(const at::Tensor& x);
at::Tensor with_channels_second(const at::Tensor& x);

}  // namespace settrain
