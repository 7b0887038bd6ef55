// DenseNets for images of 32x32 pixels, as the papers' experiments on CIFAR-100 have them: Huang et al., "Densely
// Connected Convolutional Networks" (2017), section 4.
#pragma once

#include <memory>
#include <vector>

#include "models/heads.h"
#include "models/layers.h"
#include "models/model.h"
#include "models/registry.h"

namespace settrain {

struct SmallDenseNetShape {
  int64_t depth = 40, growth = 40;

  static config::Keys keys();
};

struct SmallDenseNetOptions {
  bool bc = true;  // bottlenecks, and transitions that halve the channels

  static config::Keys keys();
};

/// Three blocks of layers that add `growth` channels each, at 32, 16 and 8 pixels; the first convolution has 2 `growth`
/// channels. Depth counts the convolutions and the head: a block has (depth - 4) / 3 layers, with bottlenecks half as
/// many. DenseNet-BC 40-40 is the papers' "DenseNet 40-40", whose text does not say BC.
///
/// state_dict names: conv1, block{1,2,3}.layer.L.{bn1,conv1[,bn2,conv2]}, trans{1,2}.{bn1,conv1}, bn1, fc.
class SmallDenseNet : public Model {
 public:
  /// Throws KeyError for a depth that gives no whole number of layers, and for images of another size than 32x32: the
  /// published code pools 8x8 pixels at the end, and answers larger images with several rows each.
  SmallDenseNet(const SmallDenseNetShape& shape, bool bc, const ModelOptions& options, const ModelContext& context);
  ModelOutput forward(const at::Tensor& images) override;

 private:
  int64_t channels_;
  std::vector<std::shared_ptr<Layer>> layers_;
  std::unique_ptr<Heads> heads_;
};

}  // namespace settrain
