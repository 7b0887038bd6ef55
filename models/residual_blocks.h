// Blocks of residual networks: He et al., "Deep Residual Learning for Image Recognition" (2016).
#pragma once

#include <memory>

#include "models/layers.h"

namespace settrain {

/// How a block's input is brought to its output's shape where they differ.
enum class Shortcut {
  kPad,      // every second pixel, and zero channels around (the paper's option A)
  kProject,  // a 1x1 convolution and a batch norm, as child `downsample` with children 0 and 1 (option B)
};

/// Two 3x3 convolutions, the first with the stride: relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)).
class BasicBlock : public Layer {
 public:
  BasicBlock(int64_t in, int64_t out, int64_t stride, Shortcut shortcut);
  at::Tensor forward(const at::Tensor& x) override;

 private:
  at::Tensor shortcut(const at::Tensor& x) const;

  int64_t stride_, padded_channels_;
  std::shared_ptr<Layer> conv1_, bn1_, conv2_, bn2_, downsample_;
};

/// Convolutions of 1x1 to `inner` channels, 3x3 (in `groups`, and with the stride, as torchvision has it) and 1x1 to
/// `out`; the shortcut projects where the shapes differ.
class BottleneckBlock : public Layer {
 public:
  BottleneckBlock(int64_t in, int64_t inner, int64_t out, int64_t stride, int64_t groups = 1);
  at::Tensor forward(const at::Tensor& x) override;

 private:
  std::shared_ptr<Layer> conv1_, bn1_, conv2_, bn2_, conv3_, bn3_, downsample_;
};

}  // namespace settrain
