// ResNets for images of about 224x224 pixels, as torchvision's: He et al., "Deep Residual Learning for Image
// Recognition" (2016), table 1; Zagoruyko and Komodakis, "Wide Residual Networks" (2016); Xie et al.,
// "Aggregated Residual Transformations for Deep Neural Networks" (2017).
#pragma once

#include <array>
#include <memory>

#include "models/heads.h"
#include "models/layers.h"
#include "models/model.h"
#include "models/registry.h"

namespace settrain {

struct ResNetShape {
  std::array<int64_t, 4> blocks;  // of each stage
  bool bottleneck;
  // Of the bottlenecks' 3x3 convolutions:
  int64_t widening = 1, groups = 1;
};

/// 18, 34, 50, 101 or 152. Throws std::out_of_range for another depth.
ResNetShape resnet_shape(int64_t depth);

/// state_dict names: conv1, bn1, layer{1..4}.B.{conv1,bn1,conv2,bn2[,conv3,bn3]}, layerS.0.downsample.{0,1}, fc.
class ResNet : public Model {
 public:
  ResNet(const ResNetShape& shape, const ModelOptions& options, const ModelContext& context);
  ModelOutput forward(const at::Tensor& images) override;

 private:
  int64_t channels_;
  std::shared_ptr<Layer> conv1_, bn1_;
  std::array<std::shared_ptr<Layer>, 4> stages_;
  std::unique_ptr<Heads> fc_;
};

}  // namespace settrain
