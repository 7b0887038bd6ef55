// Float32 convolutions for processors with AVX-512, of the kinds for which they are faster than oneDNN as LibTorch
// calls it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

#include "models/activation.h"
#include "models/packed_weights.h"

namespace settrain {

/// The range that results are clamped to: {0} is a ReLU, {0, 6} a ReLU6. NaN stays NaN.
struct ValueRange {
  float least = -std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::infinity();
};

/// The activation as a range, if it is one.
std::optional<ValueRange> range_of(Activation activation);

/// One implementation of a convolution with stride 1.
struct ConvolutionKernel {
  /// Weights [out, in / groups, height, width] as convolve() takes them.
  at::Tensor (*lay_out)(const at::Tensor& weight);

  /// x convolved + bias + added, clamped to the range. x: [batch, in, height, width] float32, channels last. bias:
  /// [out]. `added`: of the result's shape, float32, channels last; the result overwrites it, and it shares no memory
  /// with x. Undefined: the result is a new tensor.
  at::Tensor (*convolve)(const at::Tensor& x, const at::Tensor& weights, const at::Tensor& bias, ValueRange range,
                         const at::Tensor& added);
};

/// The kernel for a layer with such weights and images of that height and width, or null where oneDNN is as fast or no
/// kernel does what it does. It does not depend on the number of images, so an image's scores depend on its batch by
/// rounding at most.
const ConvolutionKernel* find_kernel(const at::Tensor& weight, const ConvolutionGeometry& geometry, int64_t height,
                                     int64_t width);

/// 1 x 1 pixels: a product of matrices, at::native::cpublas::brgemm. That is the code by which oneDNN computes such a
/// convolution too, without what LibTorch does for each call of oneDNN. Without AVX-512 it would work as well; whether
/// it is faster there was not measured.
extern const ConvolutionKernel kPointwiseKernel;

/// 3 x 3 pixels, padded by 1: F(4 x 4, 3 x 3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks",
/// 2016, section 4.3, with 36 products for 16 pixels in place of 144. The points are 0, +-sqrt(1/2), +-sqrt(2) and
/// infinity, whose roundings are smaller than those of the paper's 0, +-1, +-2. The weights take four times the memory.
/// A NaN or an infinity makes all 16 pixels of a tile that reads it NaN, or infinite.
extern const ConvolutionKernel kWinogradKernel;

namespace kernels {

#if defined(__x86_64__)
#define SETTRAIN_AVX512 __attribute__((target("avx512f,avx512vl,fma")))
#else
#define SETTRAIN_AVX512
#endif

#define SETTRAIN_INLINE inline __attribute__((always_inline))

inline constexpr int64_t kLanes = 16;  // float32 numbers in a vector
inline constexpr int64_t kTile = 4;    // pixels of the side of Winograd's tiles

/// The channels of a pixel that are computed together. Passed by pointers alone: by value they would need AVX-512
/// everywhere.
using Lanes = float __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

SETTRAIN_INLINE const Lanes* lanes(const float* at) {
  return reinterpret_cast<const Lanes*>(at);
}

SETTRAIN_INLINE Lanes* lanes(float* at) {
  return reinterpret_cast<Lanes*>(at);
}

/// Whether this processor has the instructions of SETTRAIN_AVX512.
bool are_supported();

/// So many numbers of memory of the calling thread, which it keeps for the next kernel. Their values are left over.
float* memory_of_thread(int64_t numbers);

/// A product of matrices: weight [in, out], bias [out].
struct PointwiseLayer {
  const float *weight, *bias;
  int64_t in, out;
  ValueRange range;
  bool adds;  // `to` holds what is added
};

/// `from`: [pixels, in], `to`: [pixels, out].
void convolve_pixels(const PointwiseLayer& layer, const float* from, float* to, int64_t pixels);

/// The result's memory: that of `added`, or new.
at::Tensor result_for(const at::Tensor& x, int64_t out, const at::Tensor& added);

/// Calls work(first, count) for blocks of at most `most` of `total` rows, about as many blocks in each thread.
void for_each_block(int64_t total, int64_t most, const std::function<void(int64_t first, int64_t count)>& work);

}  // namespace kernels
}  // namespace settrain
