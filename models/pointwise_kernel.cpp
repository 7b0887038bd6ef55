#include <ATen/native/CPUBlas.h>
#include <ATen/record_function.h>

#include <algorithm>

#include "models/convolution_kernels.h"

namespace settrain {
namespace {

constexpr int64_t kPixels = 64;  // pixels whose products are finished while they are in the cache

at::Tensor lay_out_pointwise(const at::Tensor& weight) {
  return weight.reshape({weight.size(0), weight.size(1)}).t().contiguous();
}

// `y`: products and sums, [pixels, out], which become the results.
SETTRAIN_AVX512 void finish(float* y, const float* __restrict bias, ValueRange range, int64_t pixels, int64_t out) {
  const float least = range.least, most = range.most;
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    float* __restrict to = y + pixel * out;
    for (int64_t c = 0; c < out; ++c) {
      float value = to[c] + bias[c];
      value = value < least ? least : value;
      to[c] = value > most ? most : value;
    }
  }
}

at::Tensor convolve_pointwise(const at::Tensor& x, const at::Tensor& weights, const at::Tensor& bias, ValueRange range,
                              const at::Tensor& added) {
  RECORD_FUNCTION("settrain::pointwise_convolution", {});
  const kernels::PointwiseLayer layer{weights.const_data_ptr<float>(),
                                      bias.const_data_ptr<float>(),
                                      weights.size(0),
                                      weights.size(1),
                                      range,
                                      added.defined()};
  at::Tensor y = kernels::result_for(x, layer.out, added);
  const float* from = x.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  kernels::for_each_block(x.size(0) * x.size(2) * x.size(3), kPixels, [&](int64_t first, int64_t pixels) {
    kernels::convolve_pixels(layer, from + first * layer.in, to + first * layer.out, pixels);
  });
  return y;
}

}  // namespace

void kernels::convolve_pixels(const PointwiseLayer& layer, const float* from, float* to, int64_t pixels) {
  for (int64_t first = 0; first < pixels; first += kPixels) {
    const int64_t count = std::min(kPixels, pixels - first);
    float* block = to + first * layer.out;
    at::native::cpublas::brgemm(count, layer.out, layer.in, layer.in, layer.out, layer.out, /*add_C=*/layer.adds,
                                from + first * layer.in, layer.weight, block, /*is_vnni=*/false);
    finish(block, layer.bias, layer.range, count, layer.out);
  }
}

const ConvolutionKernel kPointwiseKernel{lay_out_pointwise, convolve_pointwise};

}  // namespace settrain
