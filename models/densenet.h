// DenseNets for images of about 224x224 pixels, as torchvision's: Huang et al., "Densely Connected Convolutional
// Networks" (2017), table 1.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "models/heads.h"
#include "models/layers.h"
#include "models/model.h"
#include "models/registry.h"

namespace settrain {

struct DenseNetShape {
  int64_t growth, first_channels;
  std::array<int64_t, 4> layers;  // of each block
};

/// 121, 161, 169 or 201. Throws std::out_of_range for another depth.
DenseNetShape densenet_shape(int64_t depth);

/// state_dict names: features.{conv0,norm0}, features.denseblockB.denselayerL.{norm1,conv1,norm2,conv2},
/// features.transitionB.{norm,conv}, features.norm5, classifier.
class DenseNet : public Model {
 public:
  /// Throws KeyError for images that five halvings leave without a pixel.
  DenseNet(const DenseNetShape& shape, const ModelOptions& options, const ModelContext& context);
  ModelOutput forward(const at::Tensor& images) override;

 private:
  int64_t channels_;
  std::shared_ptr<Layer> features_;
  std::unique_ptr<Heads> classifier_;
};

}  // namespace settrain
