// Weights of layers as oneDNN and this folder's kernels take them, for networks that are no longer trained.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <mutex>
#include <optional>

#include "models/activation.h"
#include "models/inference_form.h"

namespace settrain {

/// The type that a layer prepared in that form has its weights in.
at::ScalarType packed_type(InferenceForm form, const at::Tensor& weight);

struct ConvolutionKernel;

struct ConvolutionGeometry {
  int64_t stride, padding, groups;
  int64_t side_padding = padding;  // on the left and on the right
};

/// Pixels of padding on each side of an image.
struct Padding {
  int64_t top, bottom, left, right;
};

/// Weights [out, in / groups, height, width] and biases [out] of a convolution with its norm folded in.
struct FoldedConvolution {
  at::Tensor weight, bias;
};

/// Weights of a convolution, [out, in / groups, height, width], and its bias [out], as one operation takes them with
/// the sum and the activation behind it. On the CPU float32 and bfloat16 weights are laid out for oneDNN or, where
/// there is one, for a kernel of convolution_kernels.h; all others are kept as they are, and ATen computes with them.
class PackedConvolution {
 public:
  /// Rounds both to `type`.
  PackedConvolution(const at::Tensor& weight, const at::Tensor& bias, at::ScalarType type);

  /// activation(x convolved + bias + added): x [batch, in, height, width] of any type, the result in the weights' type
  /// with the channels last. `added` has the result's shape, or is undefined; it may be overwritten, and shares no
  /// memory with x. The first call lays the weights out, and chooses a kernel, as suits its shapes. For others oneDNN
  /// may have to lay them out anew in each call, and another kernel's roundings differ. All calls have one geometry.
  at::Tensor operator()(const at::Tensor& x, const ConvolutionGeometry& geometry, Activation activation,
                        const at::Tensor& added);

 private:
  at::Tensor by_kernel(const at::Tensor& x, Activation activation, const at::Tensor& added) const;

  at::ScalarType type_;
  bool is_packed_;
  std::once_flag once_;
  const ConvolutionKernel* kernel_ = nullptr;  // set by the first call; null: oneDNN
  at::Tensor weight_, bias_;
};

/// The same for a linear layer, weight [out, in] and bias [out]. oneDNN lays out the weights of its own linear layers
/// for one number of rows alone. So a bfloat16 layer is a 1x1 convolution. A float32 one is a product by MKL, which is
/// faster on Intel's processors. On others with AVX-512 it is a convolution too: on AMD's Zen 5 that takes half the
/// time.
class PackedLinear {
 public:
  PackedLinear(const at::Tensor& weight, const at::Tensor& bias, at::ScalarType type);

  /// activation(x weight^T + bias + added): x [..., in], `added` [..., out] or undefined; it may be overwritten, and
  /// shares no memory with x.
  at::Tensor operator()(const at::Tensor& x, Activation activation, const at::Tensor& added);

 private:
  std::optional<PackedConvolution> convolution_;
  at::Tensor weight_, bias_;  // used where convolution_ is empty
};

}  // namespace settrain
