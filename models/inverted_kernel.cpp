#include "models/inverted_kernel.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <utility>

namespace settrain {
namespace {

using kernels::kLanes, kernels::Lanes, kernels::lanes;

constexpr int64_t kPixels = 64;  // the most pixels of a step of several rows: products of few are slow

// One image, with the channels last, and what makes its result.
struct Block {
  const float *x, *expand, *expand_bias, *depthwise, *depthwise_bias, *project, *project_bias;
  float* y;
  int64_t height, width, in, inner, out, out_height, out_width;
  int64_t kernel, stride, top, left;
  ValueRange range;
  bool adds_input;

  int64_t rows_of_a_step() const { return std::clamp<int64_t>(kPixels / out_width, 1, out_height); }
  // Rows that are expanded at a time: those that a step reads.
  int64_t kept_rows() const { return std::min(height, (rows_of_a_step() - 1) * stride + kernel); }
};

// Memory of a thread: the expanded rows, row r in place r % kept_rows(); a row of zeros; a step's rows before project.
struct Scratch {
  float *expanded, *zeros, *convolved;

  static int64_t size(const Block& block) {
    return ((block.expand ? block.kept_rows() : 0) * block.width + block.width +
            block.rows_of_a_step() * block.out_width) *
           block.inner;
  }

  Scratch(const Block& block, float* memory)
      : expanded(memory + block.width * block.inner),
        zeros(memory),
        convolved(expanded + (block.expand ? block.kept_rows() * block.width * block.inner : 0)) {}
};

// Rows that a result's row is made from, the upper one first.
using Rows = std::array<const float*, 5>;

SETTRAIN_INLINE void store(const Lanes& sum, const ValueRange& range, float* to) {
  const Lanes least = range.least + Lanes{}, most = range.most + Lanes{};
  const Lanes value = sum < least ? least : sum;
  *lanes(to) = value > most ? most : value;
}

// Pixels [begin, end) of a row of the result where taps lie beside the image, by those within.
SETTRAIN_AVX512 void convolve_edge(const Block& block, const Rows& rows, float* to, int64_t begin, int64_t end) {
  for (int64_t pixel = begin; pixel < end; ++pixel) {
    const int64_t x = pixel * block.stride - block.left;
    const int64_t first = std::max<int64_t>(0, -x), last = std::min(block.kernel, block.width - x);
    for (int64_t c = 0; c < block.inner; c += kLanes) {
      Lanes sum = *lanes(block.depthwise_bias + c);
      for (int64_t row = 0; row < block.kernel; ++row) {
        for (int64_t column = first; column < last; ++column) {
          sum += *lanes(block.depthwise + (row * block.kernel + column) * block.inner + c) *
                 *lanes(rows[static_cast<size_t>(row)] + (x + column) * block.inner + c);
        }
      }
      store(sum, block.range, to + pixel * block.inner + c);
    }
  }
}

// Pixels [begin, end), whose taps all lie within the image. The weights of a vector of channels stay in registers.
template <int64_t kKernel>
SETTRAIN_AVX512 void convolve_middle(const Block& block, const Rows& rows, float* to, int64_t begin, int64_t end) {
  const int64_t inner = block.inner, step = block.stride * inner;
  for (int64_t c = 0; c < inner; c += kLanes) {
    Lanes weight[kKernel * kKernel];
    for (int64_t tap = 0; tap < kKernel * kKernel; ++tap) weight[tap] = *lanes(block.depthwise + tap * inner + c);
    const Lanes bias = *lanes(block.depthwise_bias + c);
    const float* from[kKernel];
    for (int64_t row = 0; row < kKernel; ++row)
      from[row] = rows[static_cast<size_t>(row)] + begin * step - block.left * inner + c;
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      Lanes sum = bias;
      for (int64_t row = 0; row < kKernel; ++row) {
        for (int64_t column = 0; column < kKernel; ++column)
          sum += weight[row * kKernel + column] * *lanes(from[row] + column * inner);
        from[row] += step;
      }
      store(sum, block.range, to + pixel * inner + c);
    }
  }
}

void convolve_row(const Block& block, const Rows& rows, float* to) {
  const int64_t begin = std::min((block.left + block.stride - 1) / block.stride, block.out_width);
  const int64_t inside =
      block.width - block.kernel + block.left;  // the last first tap within, counted from the padding
  const int64_t end = std::clamp(inside < 0 ? 0 : inside / block.stride + 1, begin, block.out_width);
  convolve_edge(block, rows, to, 0, begin);
  (block.kernel == 3 ? convolve_middle<3> : convolve_middle<5>)(block, rows, to, begin, end);
  convolve_edge(block, rows, to, end, block.out_width);
}

// Rows [begin, end) of the result.
void compute_rows(const Block& block, const Scratch& scratch, int64_t begin, int64_t end) {
  const int64_t row_size = block.width * block.inner, kept = block.kept_rows(), step = block.rows_of_a_step();
  std::fill_n(scratch.zeros, row_size, 0.0F);
  const auto row_at = [&](int64_t row) -> const float* {
    if (row < 0 || row >= block.height) return scratch.zeros;
    return block.expand ? scratch.expanded + row % kept * row_size : block.x + row * row_size;
  };
  int64_t ready = std::max<int64_t>(0, begin * block.stride - block.top);
  for (int64_t first = begin; first < end; first += step) {
    const int64_t count = std::min(step, end - first);
    const int64_t needed = std::min(block.height, (first + count - 1) * block.stride - block.top + block.kernel);
    while (block.expand && ready < needed) {
      const int64_t place = ready % kept, rows = std::min(needed - ready, kept - place);
      kernels::convolve_pixels({block.expand, block.expand_bias, block.in, block.inner, block.range, false},
                               block.x + ready * block.width * block.in, scratch.expanded + place * row_size,
                               rows * block.width);
      ready += rows;
    }
    for (int64_t row = 0; row < count; ++row) {
      Rows rows;
      for (int64_t tap = 0; tap < block.kernel; ++tap)
        rows[static_cast<size_t>(tap)] = row_at((first + row) * block.stride - block.top + tap);
      convolve_row(block, rows, scratch.convolved + row * block.out_width * block.inner);
    }
    const int64_t pixels = count * block.out_width, at = first * block.out_width;
    if (block.adds_input) std::copy_n(block.x + at * block.in, pixels * block.out, block.y + at * block.out);
    kernels::convolve_pixels(
        {block.project, block.project_bias, block.inner, block.out, ValueRange{}, block.adds_input}, scratch.convolved,
        block.y + at * block.out, pixels);
  }
}

at::Tensor as_matrix(const at::Tensor& weight) {
  return weight.flatten(1).t().to(at::kFloat).contiguous();
}

at::Tensor as_vector(const at::Tensor& bias) {
  return bias.to(at::kFloat).contiguous();
}

}  // namespace

std::optional<InvertedKernel> InvertedKernel::find(const FoldedConvolution& expand, const FoldedConvolution& depthwise,
                                                   const FoldedConvolution& project, int64_t stride,
                                                   Activation activation) {
  const at::Tensor& weight = depthwise.weight;
  const auto range = range_of(activation);
  const int64_t side = weight.size(2);
  if (!kernels::are_supported() || !range || !weight.is_cpu() || weight.size(0) % kLanes != 0 || weight.size(1) != 1 ||
      weight.size(3) != side || (side != 3 && side != 5))
    return std::nullopt;
  InvertedKernel found;
  if (expand.weight.defined()) {
    found.expand_ = as_matrix(expand.weight);
    found.expand_bias_ = as_vector(expand.bias);
  }
  found.depthwise_ = as_matrix(weight);
  found.depthwise_bias_ = as_vector(depthwise.bias);
  found.project_ = as_matrix(project.weight);
  found.project_bias_ = as_vector(project.bias);
  found.kernel_ = side;
  found.stride_ = stride;
  found.range_ = *range;
  return found;
}

at::Tensor InvertedKernel::operator()(const at::Tensor& any, const Padding& padding, bool adds_input) const {
  RECORD_FUNCTION("settrain::inverted_residual", {});
  const at::Tensor x = any.to(at::kFloat).contiguous(at::MemoryFormat::ChannelsLast);
  const int64_t inner = depthwise_.size(1), in = expand_.defined() ? expand_.size(0) : inner, out = project_.size(1);
  const int64_t images = x.size(0), height = x.size(2), width = x.size(3);
  const int64_t out_height = (height + padding.top + padding.bottom - kernel_) / stride_ + 1;
  const int64_t out_width = (width + padding.left + padding.right - kernel_) / stride_ + 1;
  TORCH_CHECK(x.is_cpu() && x.size(1) == in, "a block of ", in, " channels gets ", x.sizes(), " on ", x.device());
  TORCH_CHECK(!adds_input || (in == out && height == out_height && width == out_width), "a block's sum of ", x.sizes(),
              " and ", out, " x ", out_height, " x ", out_width);
  at::Tensor y = at::empty({images, out, out_height, out_width}, x.options(), at::MemoryFormat::ChannelsLast);
  const auto pointer = [](const at::Tensor& t) { return t.defined() ? t.const_data_ptr<float>() : nullptr; };
  const Block whole{x.const_data_ptr<float>(),
                    pointer(expand_),
                    pointer(expand_bias_),
                    pointer(depthwise_),
                    pointer(depthwise_bias_),
                    pointer(project_),
                    pointer(project_bias_),
                    y.mutable_data_ptr<float>(),
                    height,
                    width,
                    in,
                    inner,
                    out,
                    out_height,
                    out_width,
                    kernel_,
                    stride_,
                    padding.top,
                    padding.left,
                    range_,
                    adds_input};
  // Bands of rows, which share rows that both expand, only where there are fewer images than threads.
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  const int64_t steps = (out_height + whole.rows_of_a_step() - 1) / whole.rows_of_a_step();
  const int64_t bands = std::clamp<int64_t>(images > 0 ? threads / images : 1, 1, steps);
  const int64_t rows = (steps + bands - 1) / bands * whole.rows_of_a_step();
  at::parallel_for(0, images * bands, 1, [&](int64_t begin, int64_t end) {
    const Scratch scratch(whole, kernels::memory_of_thread(Scratch::size(whole)));
    for (int64_t i = begin; i < end; ++i) {
      Block block = whole;
      block.x += i / bands * height * width * in;
      block.y += i / bands * out_height * out_width * out;
      const int64_t first = i % bands * rows;
      compute_rows(block, scratch, first, std::min(first + rows, out_height));
    }
  });
  return y;
}

}  // namespace settrain
