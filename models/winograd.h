// Convolutions of 3 x 3 pixels with fewer multiplications.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace settrain {

/// Whether winograd_convolution() takes such weights, [out, in, 3, 3] float32, and is faster than oneDNN for images of
/// that size, [.., in, height, width]. Needs a processor with AVX-512, and multiples of 16 channels.
bool suits_winograd(const at::Tensor& weight, int64_t height, int64_t width);

/// Weights [out, in, 3, 3] as winograd_convolution() takes them, [36, in, out] float32: four times the memory.
at::Tensor winograd_weight(const at::Tensor& weight);

/// x convolved + bias + added, with a stride of 1 and a padding of 1, and negative values set to 0 where `rectifies`.
/// x: [batch, in, height, width] float32, channels last. `weight`: of winograd_weight(). bias: [out]. `added`: of the
/// result's shape, float32, channels last; it is overwritten by the result, and shares no memory with x. Undefined: the
/// result is a new tensor. NaN stays NaN.
///
/// F(4 x 4, 3 x 3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016, section 4: 36 products
/// for 16 pixels in place of 144. The points are 0, +-sqrt(1/2), +-sqrt(2) and infinity, whose roundings are smaller
/// than those of the paper's 0, +-1, +-2.
at::Tensor winograd_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool rectifies,
                                const at::Tensor& added);

}  // namespace settrain
