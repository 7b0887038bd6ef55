// Blocks of densely connected networks: Huang et al., "Densely Connected Convolutional Networks" (2017).
#pragma once

#include <memory>
#include <string>

#include "models/layers.h"

namespace settrain {

/// What two kinds of DenseNet do differently within their blocks.
struct DenseStyle {
  std::string norm;  // name of a batch norm in a layer: "norm", followed by its number
  Fan fan;           // of the convolutions' first values
};

/// New features after the old ones: [x, convolutions(x)] along the channels. With a bottleneck a 1x1 convolution to 4
/// `growth` channels comes before the 3x3 one. Names: norm1, conv1 and, with a bottleneck, norm2, conv2.
class DenseLayer : public Layer {
 public:
  DenseLayer(int64_t in, int64_t growth, bool bottleneck, const DenseStyle& style);
  at::Tensor forward(const at::Tensor& x) override;

 private:
  std::shared_ptr<Layer> norm1_, conv1_, norm2_, conv2_;  // the last two null without a bottleneck
};

/// Batch norm, a 1x1 convolution to `out` channels, and the mean of every 2x2 pixels.
class DenseTransition : public Layer {
 public:
  /// `norm` and `conv` are the names of its layers.
  DenseTransition(int64_t in, int64_t out, const std::string& norm, const std::string& conv, Fan fan);
  at::Tensor forward(const at::Tensor& x) override;

 private:
  std::shared_ptr<Layer> norm_, conv_;
};

}  // namespace settrain
