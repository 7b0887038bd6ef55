// The block of MobileNets and EfficientNets as one operation, for processors with AVX-512.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "models/activation.h"
#include "models/convolution_kernels.h"
#include "models/packed_weights.h"

namespace settrain {

/// project(activation(depthwise(activation(expand(x))))), and + x: a 1x1, a depthwise and a 1x1 convolution, float32. A
/// few rows are expanded, convolved and projected while they are in the cache; as operations of their own the three
/// write and read the expanded image, up to six times as large as x.
class InvertedKernel {
 public:
  /// Rounds all to float32. `expand` has an undefined weight where the block has none. Empty: another processor,
  /// activation or shape than the kernel is for.
  static std::optional<InvertedKernel> find(const FoldedConvolution& expand, const FoldedConvolution& depthwise,
                                            const FoldedConvolution& project, int64_t stride, Activation activation);

  /// x: [batch, in, height, width] float32; the result has the channels last. `padding`: of the depthwise convolution.
  at::Tensor operator()(const at::Tensor& x, const Padding& padding, bool adds_input) const;

 private:
  InvertedKernel() = default;

  at::Tensor expand_, expand_bias_;        // [in, inner]; undefined without expansion
  at::Tensor depthwise_, depthwise_bias_;  // [kernel^2, inner]
  at::Tensor project_, project_bias_;      // [inner, out]
  int64_t kernel_ = 0, stride_ = 0;
  ValueRange range_;
};

}  // namespace settrain
