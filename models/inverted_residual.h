// The blocks of MobileNets and EfficientNets.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/convolution_unit.h"
#include "models/inverted_kernel.h"
#include "models/layers.h"

namespace settrain {

/// The number of channels, rounded to a multiple of 8, and up where rounding would take off more than a tenth.
int64_t channels_of_eight(double channels);

/// The names of a block's parts; its units are numbered by P from 0, squeeze-and-excitation among them.
enum class InvertedNames {
  kBlock,  // block.P.{0,1}, and block.P.{fc1,fc2}
  kConv,   // conv.P.{0,1}, and for the last unit conv.P and conv.P+1
  kLite,   // _expand_conv, _bn0, _depthwise_conv, _bn1, _project_conv, _bn2
};

struct InvertedShape {
  int64_t in, inner, out, kernel, stride;
  Activation activation;
  int64_t squeezed = 0;   // channels within squeeze-and-excitation, hard but for SiLU; 0: there is none
  bool is_fused = false;  // one convolution in the place of the 1x1 and the depthwise one
};

/// The inverted bottleneck of Sandler et al., "MobileNetV2" (2018): a 1x1 convolution to `inner` channels, a depthwise
/// one, squeeze-and-excitation, and a 1x1 convolution without activation. The first is left out where `inner` is `in`.
/// A fused block has a whole convolution instead of the first three, and nothing else where `inner` is `in`. Where the
/// shapes agree, the input is added, in training with stochastic depth.
class InvertedResidual : public Layer {
 public:
  /// `skipped`: the probability that an image skips the block in training.
  InvertedResidual(InvertedNames names, const UnitOptions& options, const InvertedShape& shape, double skipped = 0);
  at::Tensor forward(const at::Tensor& x) override;
  void prepare(InferenceForm form) override;

 private:
  // The unit before the last one. A fused block has none.
  const Convolution& depthwise() const { return units_[units_.size() - 2].convolution(); }

  double skipped_;
  bool adds_input_, is_fused_, is_one_unit_ = false;
  std::vector<ConvolutionUnit> units_;
  std::shared_ptr<Layer> excitation_;     // before the last unit; may be null
  std::optional<InvertedKernel> kernel_;  // where prepared, and where there is one
};

}  // namespace settrain
