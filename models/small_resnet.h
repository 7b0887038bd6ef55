// ResNets for images of about 32x32 pixels: He et al., "Deep Residual Learning for Image Recognition" (2016),
// section 4.2.
#pragma once

#include <array>
#include <memory>

#include "models/heads.h"
#include "models/layers.h"
#include "models/model.h"
#include "models/registry.h"

namespace settrain {

struct SmallResNetOptions {
  int64_t width = 16;  // channels of the first stage

  static config::Keys keys();
};

/// Three stages of (depth - 2) / 6 blocks each, of `width`, 2 `width` and 4 `width` channels; the second and third
/// halve the resolution. Shortcuts between stages pad (the paper's option A).
///
/// state_dict names: conv1, bn1, layer{1,2,3}.B.{conv1,bn1,conv2,bn2}, fc.
class SmallResNet : public Model {
 public:
  /// `depth` is 6 n + 2.
  SmallResNet(int64_t depth, int64_t width, const ModelOptions& options, const ModelContext& context);
  ModelOutput forward(const at::Tensor& images) override;

 private:
  int64_t channels_;
  std::shared_ptr<Layer> conv1_, bn1_;
  std::array<std::shared_ptr<Layer>, 3> stages_;
  std::unique_ptr<Heads> fc_;
};

}  // namespace settrain
