#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>

#include "models/convolution_kernels.h"

namespace settrain {
namespace {

using kernels::kLanes, kernels::Lanes, kernels::lanes;

constexpr int64_t kOut = kernels::kTile, kIn = kOut + 2, kProducts = kIn * kIn;  // pixels of a tile's side, out and in
constexpr int64_t kBlock = 28;               // tiles that a thread computes together; more or fewer were slower
constexpr int64_t kFewest = 14;              // tiles for each thread, below which all threads share one block
constexpr int64_t kMostShared = 4 * kBlock;  // tiles of such a block, which bounds its memory
constexpr float kA = 0.70710678118654752F, kB = 1.41421356237309505F;  // the points

// Six pixels, `step` apart, to six values: the paper's B^T d. For a point p the coefficients are those of M(z) / (z -
// p), where M(z) = z (z^2 - 1/2) (z^2 - 2), and for infinity those of M.
SETTRAIN_INLINE void transform_in(const Lanes* d, Lanes* to, int64_t step) {
  const Lanes even_a = d[4 * step] - 2 * d[2 * step], odd_a = kA * (d[3 * step] - 2 * d[step]);
  const Lanes even_b = d[4 * step] - 0.5F * d[2 * step], odd_b = kB * (d[3 * step] - 0.5F * d[step]);
  to[0] = d[0] - 2.5F * d[2 * step] + d[4 * step];
  to[step] = even_a + odd_a;
  to[2 * step] = even_a - odd_a;
  to[3 * step] = even_b + odd_b;
  to[4 * step] = even_b - odd_b;
  to[5 * step] = d[step] - 2.5F * d[3 * step] + d[5 * step];
}

// Six products, `step` apart, to four pixels, `to_step` apart: the paper's A^T m. Pixel i has the points to the power
// i.
SETTRAIN_INLINE void transform_out(const Lanes* m, Lanes* to, int64_t step, int64_t to_step) {
  const Lanes even_a = m[step] + m[2 * step], odd_a = kA * (m[step] - m[2 * step]);
  const Lanes even_b = m[3 * step] + m[4 * step], odd_b = kB * (m[3 * step] - m[4 * step]);
  to[0] = m[0] + even_a + even_b;
  to[to_step] = odd_a + odd_b;
  to[2 * to_step] = 0.5F * even_a + 2 * even_b;
  to[3 * to_step] = 0.5F * odd_a + 2 * odd_b + m[5 * step];
}

struct Layer3x3 {
  const float *x, *weight, *bias;
  float* y;
  bool adds;  // y holds what is added
  ValueRange range;
  int64_t height, width, in, out, tiles_down, tiles_across;
};

// Tiles that are computed together. `values`: [36, tiles, in]; `products`: [36, tiles, out].
struct Block {
  int64_t first, tiles;
  float *values, *products;
};

struct Corner {
  int64_t image, y, x;  // the tile's first pixel
};

SETTRAIN_INLINE Corner corner_of(const Layer3x3& layer, int64_t tile) {
  const int64_t a_picture = layer.tiles_down * layer.tiles_across, within = tile % a_picture;
  return {tile / a_picture, within / layer.tiles_across * kOut, within % layer.tiles_across * kOut};
}

// This and the next functions compute their part for the block's tiles, or products, from `begin` to `end`.
SETTRAIN_AVX512 void compute_values(const Layer3x3& layer, const Block& block, int64_t begin, int64_t end) {
  for (int64_t tile = begin; tile < end; ++tile) {
    const Corner corner = corner_of(layer, block.first + tile);
    for (int64_t c = 0; c < layer.in; c += kLanes) {
      Lanes pixels[kProducts], columns[kProducts];
      for (int64_t row = 0; row < kIn; ++row) {
        const int64_t y = corner.y + row - 1;
        for (int64_t column = 0; column < kIn; ++column) {
          const int64_t x = corner.x + column - 1;
          const bool is_inside = y >= 0 && y < layer.height && x >= 0 && x < layer.width;
          pixels[row * kIn + column] =
              is_inside ? *lanes(layer.x + ((corner.image * layer.height + y) * layer.width + x) * layer.in + c)
                        : Lanes{};
        }
      }
      for (int64_t i = 0; i < kIn; ++i) transform_in(pixels + i, columns + i, kIn);
      for (int64_t i = 0; i < kIn; ++i) transform_in(columns + i * kIn, pixels + i * kIn, 1);
      for (int64_t k = 0; k < kProducts; ++k)
        *lanes(block.values + (k * block.tiles + tile) * layer.in + c) = pixels[k];
    }
  }
}

void compute_products(const Layer3x3& layer, const Block& block, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; ++k) {
    at::native::cpublas::brgemm(block.tiles, layer.out, layer.in, layer.in, layer.out, layer.out, /*add_C=*/false,
                                block.values + k * block.tiles * layer.in, layer.weight + k * layer.in * layer.out,
                                block.products + k * block.tiles * layer.out, /*is_vnni=*/false);
  }
}

SETTRAIN_AVX512 void compute_pixels(const Layer3x3& layer, const Block& block, int64_t begin, int64_t end) {
  const Lanes least = layer.range.least + Lanes{}, most = layer.range.most + Lanes{};
  for (int64_t tile = begin; tile < end; ++tile) {
    const Corner corner = corner_of(layer, block.first + tile);
    const int64_t rows = std::min(kOut, layer.height - corner.y), columns = std::min(kOut, layer.width - corner.x);
    for (int64_t c = 0; c < layer.out; c += kLanes) {
      Lanes products[kProducts], half[kIn * kOut], pixels[kOut * kOut];
      for (int64_t k = 0; k < kProducts; ++k)
        products[k] = *lanes(block.products + (k * block.tiles + tile) * layer.out + c);
      for (int64_t i = 0; i < kIn; ++i) transform_out(products + i, half + i, kIn, kIn);
      for (int64_t i = 0; i < kOut; ++i) transform_out(half + i * kIn, pixels + i * kOut, 1, 1);
      for (int64_t row = 0; row < rows; ++row) {
        float* to = layer.y + ((corner.image * layer.height + corner.y + row) * layer.width + corner.x) * layer.out + c;
        for (int64_t column = 0; column < columns; ++column, to += layer.out) {
          Lanes value = pixels[row * kOut + column] + *lanes(layer.bias + c);
          if (layer.adds) value += *lanes(to);
          value = value < least ? least : value;
          value = value > most ? most : value;
          *lanes(to) = value;
        }
      }
    }
  }
}

Block block_in_memory(const Layer3x3& layer, int64_t first, int64_t tiles) {
  float* memory = kernels::memory_of_thread(kProducts * tiles * (layer.in + layer.out));
  return {first, tiles, memory, memory + kProducts * tiles * layer.in};
}

void convolve(const Layer3x3& layer, int64_t tiles) {
  if (tiles == 0) return;
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  if (threads > 1 && tiles < threads * kFewest && tiles <= kMostShared) {
    const Block block = block_in_memory(layer, 0, tiles);
    at::parallel_for(0, tiles, 1, [&](int64_t begin, int64_t end) { compute_values(layer, block, begin, end); });
    at::parallel_for(0, kProducts, 1, [&](int64_t begin, int64_t end) { compute_products(layer, block, begin, end); });
    at::parallel_for(0, tiles, 1, [&](int64_t begin, int64_t end) { compute_pixels(layer, block, begin, end); });
    return;
  }
  kernels::for_each_block(tiles, kBlock, [&](int64_t first, int64_t count) {
    const Block block = block_in_memory(layer, first, count);
    compute_values(layer, block, 0, count);
    compute_products(layer, block, 0, kProducts);
    compute_pixels(layer, block, 0, count);
  });
}

// The paper's G w G^T. The row of a point p is (1, p, p^2) / M'(p).
at::Tensor lay_out_winograd(const at::Tensor& weight) {
  const double a = std::sqrt(0.5), b = std::sqrt(2.0);
  const at::Tensor g = at::tensor({1.0, 0.0, 0.0,                 //
                                   -2 / 3., -2 * a / 3, -1 / 3.,  //
                                   -2 / 3., 2 * a / 3, -1 / 3.,   //
                                   1 / 6., b / 6, 1 / 3.,         //
                                   1 / 6., -b / 6, 1 / 3.,        //
                                   0.0, 0.0, 1.0},
                                  at::kDouble)
                           .view({kIn, 3});
  return at::matmul(at::matmul(g, weight.to(at::kDouble)), g.t())
      .permute({2, 3, 1, 0})
      .reshape({kProducts, weight.size(1), weight.size(0)})
      .to(at::kFloat)
      .contiguous();
}

at::Tensor convolve_winograd(const at::Tensor& x, const at::Tensor& weights, const at::Tensor& bias, ValueRange range,
                             const at::Tensor& added) {
  RECORD_FUNCTION("settrain::winograd_convolution", {});
  const int64_t height = x.size(2), width = x.size(3), out = weights.size(2);
  at::Tensor y = kernels::result_for(x, out, added);
  const Layer3x3 layer{.x = x.const_data_ptr<float>(),
                       .weight = weights.const_data_ptr<float>(),
                       .bias = bias.const_data_ptr<float>(),
                       .y = y.mutable_data_ptr<float>(),
                       .adds = added.defined(),
                       .range = range,
                       .height = height,
                       .width = width,
                       .in = x.size(1),
                       .out = out,
                       .tiles_down = (height + kOut - 1) / kOut,
                       .tiles_across = (width + kOut - 1) / kOut};
  convolve(layer, x.size(0) * layer.tiles_down * layer.tiles_across);
  return y;
}

}  // namespace

const ConvolutionKernel kWinogradKernel{lay_out_winograd, convolve_winograd};

}  // namespace settrain
