// ConvNeXt for images of about 224x224 pixels, as torchvision's: Liu et al., "A ConvNet for the 2020s" (2022).
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "models/heads.h"
#include "models/layers.h"
#include "models/model.h"
#include "models/registry.h"

namespace settrain {

struct ConvNextShape {
  std::array<int64_t, 4> blocks, channels;  // of each stage
};

inline constexpr ConvNextShape kConvNextTiny{{3, 3, 9, 3}, {96, 192, 384, 768}};

struct ConvNextOptions {
  double stochastic_depth = 0.1;

  static config::Keys keys();
};

/// A stem of 4x4 patches, and stages of blocks with a halving between any two.
///
/// state_dict names: features.0.{0,1} (the stem), features.{1,3,5,7}.B.{layer_scale,block.{0,2,3,5}},
/// features.{2,4,6}.{0,1} (the halvings), classifier.{0,2}.
class ConvNext : public Model {
 public:
  /// Throws KeyError for images of less than 32x32 pixels, of which the halvings leave none.
  ConvNext(const ConvNextShape& shape, double stochastic_depth, const ModelOptions& options,
           const ModelContext& context);
  ModelOutput forward(const at::Tensor& images) override;

 private:
  int64_t channels_;
  std::vector<std::shared_ptr<Layer>> features_;
  std::shared_ptr<Layer> norm_;
  std::unique_ptr<Heads> classifier_;
};

}  // namespace settrain
