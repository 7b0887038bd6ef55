// Blocks of ConvNeXt: Liu et al., "A ConvNet for the 2020s" (2022), figure 4.
#pragma once

#include <memory>

#include "models/layers.h"

namespace settrain {

/// Of the first weights of every layer: normal. (torchvision cuts them off at 2, a hundred standard deviations.)
inline constexpr double kConvNextDeviation = 0.02;

/// x + layer_scale * branch(x), in training with stochastic depth. The branch is a 7x7 convolution of every channel by
/// itself, a layer norm, and at every pixel a perceptron of 4 `channels` hidden units with GELU.
///
/// Names: layer_scale [channels, 1, 1], which starts at 1e-6, and block.{0,2,3,5}.
class ConvNextBlock : public Layer {
 public:
  /// `skipped`: the probability that an image skips the branch in training.
  ConvNextBlock(int64_t channels, double skipped);
  at::Tensor forward(const at::Tensor& x) override;

 private:
  double skipped_;
  at::Tensor layer_scale_;
  std::shared_ptr<Layer> convolution_, norm_, widen_, narrow_;
};

/// Stochastic depth (Huang et al. 2016) by rows: all values of an image become zero with probability `p`, drawn from
/// ATen's generator, and are divided by 1 - p else. p is below 1.
at::Tensor randomly_skipped(const at::Tensor& x, double p);

}  // namespace settrain
