#include "models/convolution_kernels.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <vector>

namespace settrain {

std::optional<ValueRange> range_of(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return ValueRange{};
    case Activation::kRelu:
      return ValueRange{.least = 0};
    case Activation::kRelu6:
      return ValueRange{.least = 0, .most = 6};
    default:
      return std::nullopt;
  }
}

const ConvolutionKernel* find_kernel(const at::Tensor& weight, const ConvolutionGeometry& geometry, int64_t height,
                                     int64_t width) {
  using kernels::kLanes, kernels::kTile;
  // For one image on an Intel Xeon with 2 MB of second-level cache a core: with more weights, or fewer tiles, oneDNN
  // was as fast or faster.
  constexpr int64_t kMostPointwise = 1 << 18, kMostWinograd = 1 << 17, kFewestTiles = 16;
  if (!kernels::are_supported() || weight.scalar_type() != at::kFloat || geometry.stride != 1 || geometry.groups != 1)
    return nullptr;
  const int64_t side = weight.size(2), channels = weight.size(0) * weight.size(1);
  if (weight.size(3) != side || geometry.padding != side / 2 || geometry.side_padding != side / 2) return nullptr;
  if (side == 1) return channels <= kMostPointwise ? &kPointwiseKernel : nullptr;
  const auto tiles = [](int64_t pixels) { return (pixels + kTile - 1) / kTile; };
  const bool suits = side == 3 && weight.size(0) % kLanes == 0 && weight.size(1) % kLanes == 0 &&
                     channels <= kMostWinograd && tiles(height) * tiles(width) >= kFewestTiles;
  return suits ? &kWinogradKernel : nullptr;
}

namespace kernels {

bool are_supported() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

float* memory_of_thread(int64_t numbers) {
  thread_local std::vector<float> memory;
  if (memory.size() < static_cast<size_t>(numbers)) memory.resize(static_cast<size_t>(numbers));
  return memory.data();
}

at::Tensor result_for(const at::Tensor& x, int64_t out, const at::Tensor& added) {
  if (added.defined()) return added;
  return at::empty({x.size(0), out, x.size(2), x.size(3)}, x.options(), at::MemoryFormat::ChannelsLast);
}

void for_each_block(int64_t total, int64_t most, const std::function<void(int64_t first, int64_t count)>& work) {
  if (total == 0) return;
  const auto rounded_up = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  const int64_t blocks = rounded_up(rounded_up(total, most), threads) * threads, size = rounded_up(total, blocks);
  at::parallel_for(0, rounded_up(total, size), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) work(i * size, std::min(size, total - i * size));
  });
}

}  // namespace kernels
}  // namespace settrain
