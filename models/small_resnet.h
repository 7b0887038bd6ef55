// ResNets for images of about 32x32 pixels: He et al., "Deep Residual Learning for Image Recognition" (2016),
// section 4.2.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <memory>

#include "models/heads.h"
#include "models/model.h"
#include "models/registry.h"

namespace settrain {

struct SmallResNetOptions {
  int64_t width = 16;  // channels of the first stage

  static config::Keys keys();
};

/// Three stages of (depth - 2) / 6 blocks each, of `width`, 2 `width` and 4 `width` channels; the second and third
/// halve the resolution. Shortcuts between stages take every second pixel and pad with zero channels (the paper's
/// option A). Convolutions start normal with standard deviation sqrt(2 / (out_channels * 9)).
///
/// state_dict names: conv1, bn1, layer{1,2,3}.B.{conv1,bn1,conv2,bn2}, fc.
class SmallResNet : public Model {
 public:
  /// `depth` is 6 n + 2. `head`: see make_head().
  SmallResNet(int64_t depth, int64_t width, const std::string& head, const ModelContext& context);
  ModelOutput forward(const at::Tensor& images) override;

 private:
  int64_t channels_;
  torch::nn::Conv2d conv1_;
  torch::nn::BatchNorm2d bn1_;
  torch::nn::Sequential layer1_, layer2_, layer3_;
  std::shared_ptr<Head> fc_;
};

}  // namespace settrain
