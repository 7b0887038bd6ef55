// Convolutions and linear layers with a bias, of networks without batch norm.
#pragma once

#include "models/layers.h"

namespace settrain {

/// A tensor to be drawn: normal, or uniform in +-`bound`. Without storage where a CostCounter lives.
at::Tensor normal_values(at::IntArrayRef sizes, double deviation);
at::Tensor uniform_values(at::IntArrayRef sizes, double bound);

/// x [..., in] weight^T + bias, weight [out, in]. Of an x without storage, what it costs is counted.
at::Tensor linear_map(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// A convolution with a bias, which starts at zero.
class BiasedConvolution : public Layer {
 public:
  /// `weight`: [out, in / groups, kernel, kernel], as it starts.
  BiasedConvolution(const at::Tensor& weight, const ConvolutionGeometry& geometry);
  at::Tensor forward(const at::Tensor& x) override;

 private:
  ConvolutionGeometry geometry_;
  at::Tensor weight_, bias_;
};

/// From [..., in] to [..., out].
class LinearLayer : public Layer {
 public:
  /// `weight` [out, in] and `bias` [out] as they start.
  LinearLayer(const at::Tensor& weight, const at::Tensor& bias);
  at::Tensor forward(const at::Tensor& x) override;

 private:
  at::Tensor weight_, bias_;
};

}  // namespace settrain
