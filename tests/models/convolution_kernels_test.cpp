// Convolutions by this project's own kernels, against ordinary ones in double.
#include "models/convolution_kernels.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "models/inverted_kernel.h"
#include "models/packed_weights.h"
#include "tests/support/catch2.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

const double kTolerance = network_tolerance(at::kFloat);  // values are of order 1
constexpr ConvolutionGeometry kPointwise{1, 0, 1}, kPadded{1, 1, 1};

// Weights that keep the size of what they convolve.
at::Tensor weights(int64_t out, int64_t in, int64_t side) {
  return at::randn({out, in, side, side}) / std::sqrt(static_cast<double>(side * side * in));
}

at::Tensor channels_last(const at::Tensor& x) {
  return x.contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor convolved_in_double(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::conv2d(x.to(at::kDouble), weight.to(at::kDouble), bias.to(at::kDouble), 1, weight.size(2) / 2);
}

bool has_kernels() {
  if (find_kernel(at::zeros({16, 16, 1, 1}), kPointwise, 8, 8)) return true;
  WARN("skipped: the processor has no AVX-512");
  return false;
}

struct Threads {
  int before = at::get_num_threads();
  ~Threads() { at::set_num_threads(before); }
};

TEST_CASE("a kernel convolves, adds and keeps to a range, for any size, batch and number of threads") {
  if (!has_kernels()) return;
  const c10::InferenceMode inference;
  const Threads restored;
  at::manual_seed(1);
  struct Case {
    int64_t images, in, out, side, height, width;
  };
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    for (const auto& [images, in, out, side, height, width] : std::vector<Case>{{1, 16, 16, 3, 13, 16},
                                                                                {1, 32, 16, 3, 14, 14},
                                                                                {2, 16, 48, 3, 31, 17},
                                                                                {5, 64, 64, 3, 56, 56},
                                                                                {16, 16, 32, 3, 15, 64},
                                                                                {1, 3, 5, 1, 1, 1},
                                                                                {2, 24, 144, 1, 7, 9},
                                                                                {3, 144, 24, 1, 14, 14},
                                                                                {9, 64, 65, 1, 8, 8}}) {
      CAPTURE(threads, images, in, out, side, height, width);
      const at::Tensor weight = weights(out, in, side), bias = at::randn({out});
      const ConvolutionKernel& kernel = side == 1 ? kPointwiseKernel : kWinogradKernel;
      const at::Tensor x = channels_last(at::randn({images, in, height, width}));
      const at::Tensor added = channels_last(at::randn({images, out, height, width}));
      const at::Tensor expected = convolved_in_double(x, weight, bias), laid_out = kernel.lay_out(weight);
      const auto got = [&](ValueRange range, const at::Tensor& summand) {
        return kernel.convolve(x, laid_out, bias, range, summand);
      };
      CHECK(test::relative_error(got({}, {}), expected) <= kTolerance);
      CHECK(test::relative_error(got({.least = 0}, {}), expected.relu()) <= kTolerance);
      CHECK(test::relative_error(got({.least = 0, .most = 0.5}, added.clone()), (expected + added).clamp(0, 0.5)) <=
            kTolerance);
      const at::Tensor sum = added.clone();
      CHECK(got({}, sum).is_same(sum));
      CHECK(test::relative_error(sum, expected + added) <= kTolerance);
    }
  }
}

TEST_CASE("a kernel makes no pixels of no images") {
  if (!has_kernels()) return;
  const Threads restored;
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    const at::Tensor x = channels_last(at::zeros({0, 16, 16, 16})), bias = at::zeros({32});
    for (const ConvolutionKernel* kernel : {&kPointwiseKernel, &kWinogradKernel}) {
      const at::Tensor weight = kernel->lay_out(weights(32, 16, kernel == &kPointwiseKernel ? 1 : 3));
      CHECK(kernel->convolve(x, weight, bias, {}, {}).sizes() == at::IntArrayRef({0, 32, 16, 16}));
    }
  }
}

TEST_CASE("Winograd's roundings are few times those of ordinary convolutions") {
  if (!has_kernels()) return;
  const c10::InferenceMode inference;
  at::manual_seed(4);
  const at::Tensor weight = weights(64, 64, 3), bias = at::randn({64}), x = channels_last(at::randn({2, 64, 56, 56}));
  const at::Tensor expected = convolved_in_double(x, weight, bias);
  const auto error = [&](const at::Tensor& y) { return (y - expected).abs().max().item<double>(); };
  const double ordinary = error(at::conv2d(x, weight, bias, 1, 1));
  const double winograd = error(kWinogradKernel.convolve(x, kWinogradKernel.lay_out(weight), bias, {}, {}));
  CAPTURE(ordinary, winograd);
  CHECK(winograd <= 4 * ordinary);  // the points 0, +-1, +-2 have some ten times
}

TEST_CASE("a kernel keeps NaN behind a ReLU, in the tiles that read it alone") {
  if (!has_kernels()) return;
  const c10::InferenceMode inference;
  at::manual_seed(2);
  for (const ConvolutionKernel* kernel : {&kPointwiseKernel, &kWinogradKernel}) {
    const bool is_pointwise = kernel == &kPointwiseKernel;
    const at::Tensor weight = kernel->lay_out(weights(16, 16, is_pointwise ? 1 : 3)), bias = at::randn({16});
    const at::Tensor x = channels_last(at::randn({2, 16, 16, 16}));
    const at::Tensor clean = kernel->convolve(x, weight, bias, {.least = 0}, {}).clone();
    x[1].select(0, 3)[5][5].fill_(std::numeric_limits<double>::quiet_NaN());
    const at::Tensor got = kernel->convolve(x, weight, bias, {.least = 0}, {});
    at::Tensor reads_it = at::zeros({2, 1, 16, 16}, at::kBool);
    reads_it[1][0]
        .narrow(0, is_pointwise ? 5 : 4, is_pointwise ? 1 : 4)
        .narrow(1, is_pointwise ? 5 : 4, is_pointwise ? 1 : 4)
        .fill_(true);
    const at::Tensor everywhere = reads_it.expand_as(got);
    CHECK(got.isnan().equal(everywhere));
    CHECK(got.masked_fill(everywhere, 0).equal(clean.masked_fill(everywhere, 0)));
  }
}

TEST_CASE("a kernel is found where it does what the layer does and is faster") {
  if (!has_kernels()) return;
  const at::Tensor three = at::zeros({64, 64, 3, 3}), one = at::zeros({64, 64, 1, 1});
  CHECK(find_kernel(three, kPadded, 56, 56) == &kWinogradKernel);
  CHECK(find_kernel(one, kPointwise, 7, 7) == &kPointwiseKernel);
  CHECK(find_kernel(three, kPadded, 7, 7) == nullptr);                            // too few tiles
  CHECK(find_kernel(at::zeros({512, 512, 3, 3}), kPadded, 56, 56) == nullptr);    // too many weights
  CHECK(find_kernel(at::zeros({2048, 512, 1, 1}), kPointwise, 7, 7) == nullptr);  // too many weights
  CHECK(find_kernel(at::zeros({64, 3, 3, 3}), kPadded, 56, 56) == nullptr);       // channels that fill no vector
  CHECK(find_kernel(three, {2, 1, 1}, 56, 56) == nullptr);                        // stride
  CHECK(find_kernel(three, {1, 0, 1}, 56, 56) == nullptr);                        // padding
  CHECK(find_kernel(three, {1, 1, 1, 0}, 56, 56) == nullptr);                     // padding of the sides
  CHECK(find_kernel(at::zeros({64, 32, 3, 3}), {1, 1, 2}, 56, 56) == nullptr);    // groups
  CHECK(find_kernel(at::zeros({24, 16, 3, 3}), kPadded, 56, 56) == nullptr);
  CHECK(find_kernel(one, kPadded, 56, 56) == nullptr);
  CHECK(find_kernel(at::zeros({512, 512, 1, 1}), kPointwise, 7, 7) == &kPointwiseKernel);
  CHECK(find_kernel(at::zeros({512, 256, 3, 3}), kPadded, 13, 13) == &kWinogradKernel);
  CHECK(find_kernel(at::zeros({512, 256, 3, 3}), kPadded, 13, 12) == nullptr);
  CHECK(find_kernel(three.to(at::kDouble), kPadded, 56, 56) == nullptr);
  CHECK(find_kernel(at::zeros({64, 64, 3, 1}), {1, 1, 1, 1}, 56, 56) == nullptr);  // not square
  CHECK(find_kernel(three.to(at::kBFloat16), kPadded, 56, 56) == nullptr);
}

TEST_CASE("a packed convolution by a kernel refuses other channels and other summands") {
  if (!has_kernels()) return;
  const c10::InferenceMode inference;
  PackedConvolution convolution(weights(32, 16, 3), at::zeros({32}), at::kFloat);
  convolution(at::randn({1, 16, 20, 20}), kPadded, Activation::kNone, {});
  CHECK_THROWS_AS(convolution(at::randn({1, 8, 20, 20}), kPadded, Activation::kNone, {}), c10::Error);
  CHECK_THROWS_AS(convolution(at::randn({1, 16, 20, 20}), kPadded, Activation::kNone, at::randn({1, 32, 20, 19})),
                  c10::Error);
}

TEST_CASE("a packed convolution by a kernel takes every activation and sum, and images of any size") {
  const c10::InferenceMode inference;
  at::manual_seed(3);
  const at::Tensor bias = at::randn({32});
  for (const int64_t side : {1, 3}) {
    const at::Tensor weight = weights(32, 16, side);
    const ConvolutionGeometry& geometry = side == 1 ? kPointwise : kPadded;
    if (has_kernels()) REQUIRE(find_kernel(weight, geometry, 20, 20) != nullptr);
    for (const int64_t first_size : {6, 20}) {
      PackedConvolution convolution(weight, bias, at::kFloat);
      for (const int64_t size : {first_size, int64_t{1}, int64_t{6}, int64_t{20}}) {
        const at::Tensor x = at::randn({2, 16, size, size}), added = at::randn({2, 32, size, size});
        const at::Tensor expected = convolved_in_double(x, weight, bias);
        for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kRelu6, Activation::kSilu,
                                            Activation::kHardSwish, Activation::kGelu}) {
          CAPTURE(side, first_size, size, static_cast<int>(activation));
          const auto by = [&](const at::Tensor& y) { return activated(y.clone(), activation); };
          CHECK(test::relative_error(convolution(x, geometry, activation, {}), by(expected)) <= kTolerance);
          CHECK(test::relative_error(convolution(x, geometry, activation, added.clone()), by(expected + added)) <=
                kTolerance);
        }
      }
    }
  }
}

struct Shape {
  int64_t in, inner, out, kernel, stride;
};

FoldedConvolution random_convolution(int64_t out, int64_t in, int64_t side) {
  return {at::randn({out, in, side, side}, at::kDouble) / std::sqrt(static_cast<double>(side * side * in)),
          at::randn({out}, at::kDouble)};
}

struct RandomBlock {
  explicit RandomBlock(const Shape& of)
      : shape(of),
        depthwise(random_convolution(of.inner, 1, of.kernel)),
        project(random_convolution(of.out, of.inner, 1)) {
    if (of.in != of.inner) expand = random_convolution(of.inner, of.in, 1);
  }

  std::optional<InvertedKernel> kernel(Activation activation) const {
    return InvertedKernel::find(expand, depthwise, project, shape.stride, activation);
  }

  at::Tensor in_double(const at::Tensor& x, const Padding& padding, Activation activation, bool adds_input) const {
    at::Tensor y = x.to(at::kDouble);
    if (expand.weight.defined()) y = activated(at::conv2d(y, expand.weight, expand.bias), activation);
    y = at::constant_pad_nd(y, {padding.left, padding.right, padding.top, padding.bottom});
    y = activated(at::conv2d(y, depthwise.weight, depthwise.bias, /*stride=*/at::IntArrayRef{shape.stride},
                             /*padding=*/at::IntArrayRef{0}, /*dilation=*/at::IntArrayRef{1}, shape.inner),
                  activation);
    y = at::conv2d(y, project.weight, project.bias);
    return adds_input ? y + x : y;
  }

  Shape shape;
  FoldedConvolution expand, depthwise, project;
};

TEST_CASE("a block's kernel equals three convolutions, for any size, padding, batch and number of threads") {
  if (!has_kernels()) return;
  const c10::InferenceMode inference;
  const Threads restored;
  at::manual_seed(1);
  for (const Shape& shape : std::vector<Shape>{{16, 96, 24, 3, 2},
                                               {24, 144, 24, 5, 1},
                                               {32, 32, 16, 3, 1},
                                               {32, 32, 32, 5, 2},
                                               {3, 16, 3, 3, 1},
                                               {80, 480, 80, 3, 1}}) {
    const RandomBlock block(shape);
    const bool adds_input = shape.in == shape.out && shape.stride == 1;
    for (const Activation activation : {Activation::kRelu6, Activation::kRelu, Activation::kNone}) {
      const InvertedKernel kernel = *block.kernel(activation);
      for (const int threads : {1, 2, 3}) {
        at::set_num_threads(threads);
        for (const auto& [images, height, width] : std::vector<std::array<int64_t, 3>>{
                 {1, 1, 1}, {1, 2, 3}, {2, 7, 7}, {1, 14, 14}, {1, 33, 20}, {5, 9, 70}, {0, 8, 8}}) {
          const int64_t half = shape.kernel / 2;
          // Half the kernel on each side; and TensorFlow's for an even size and two steps.
          for (const Padding& padding : {Padding{half, half, half, half}, Padding{half - 1, half, half - 1, half}}) {
            const bool adds = adds_input && padding.top == half;
            if (height + padding.top + padding.bottom < shape.kernel ||
                width + padding.left + padding.right < shape.kernel)
              continue;
            CAPTURE(shape.in, shape.inner, shape.kernel, shape.stride, images, height, width, padding.top, threads,
                    static_cast<int>(activation));
            const at::Tensor x = channels_last(at::randn({images, shape.in, height, width}));
            const at::Tensor got = kernel(x, padding, adds), expected = block.in_double(x, padding, activation, adds);
            REQUIRE(got.sizes() == expected.sizes());
            if (images > 0) CHECK(test::relative_error(got, expected) <= kTolerance);
          }
        }
      }
    }
  }
}

TEST_CASE("a block's kernel keeps NaN, in the pixels that read it alone") {
  if (!has_kernels()) return;
  const c10::InferenceMode inference;
  at::manual_seed(2);
  const RandomBlock block({16, 32, 24, 3, 1});
  const InvertedKernel kernel = *block.kernel(Activation::kRelu6);
  const at::Tensor x = channels_last(at::randn({2, 16, 12, 70}));
  const at::Tensor clean = kernel(x, {1, 1, 1, 1}, false);
  x[1][3][5][40] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor got = kernel(x, {1, 1, 1, 1}, false);
  at::Tensor reads_it = at::zeros({2, 1, 12, 70}, at::kBool);
  reads_it[1][0].narrow(0, 4, 3).narrow(1, 39, 3).fill_(true);
  const at::Tensor everywhere = reads_it.expand_as(got);
  CHECK(got.isnan().equal(everywhere));
  CHECK(got.masked_fill(everywhere, 0).equal(clean.masked_fill(everywhere, 0)));
}

TEST_CASE("an image's result does not depend on its batch") {
  if (!has_kernels()) return;
  const c10::InferenceMode inference;
  const Threads restored;
  at::set_num_threads(2);
  at::manual_seed(3);
  const InvertedKernel kernel = *RandomBlock({24, 144, 24, 5, 1}).kernel(Activation::kRelu6);
  const at::Tensor x = channels_last(at::randn({4, 24, 28, 28}));
  const at::Tensor together = kernel(x, {2, 2, 2, 2}, true);
  CHECK(test::relative_error(kernel(channels_last(x.narrow(0, 2, 1)), {2, 2, 2, 2}, true), together.narrow(0, 2, 1)) <=
        kTolerance);
}

TEST_CASE("a block's kernel is found for the shapes that it is for, and refuses other images") {
  if (!has_kernels()) return;
  const RandomBlock block({16, 96, 16, 3, 1});
  CHECK_FALSE(block.kernel(Activation::kSilu));
  CHECK_FALSE(block.kernel(Activation::kHardSwish));
  CHECK_FALSE(RandomBlock({16, 96, 16, 7, 1}).kernel(Activation::kRelu6));
  CHECK_FALSE(RandomBlock({16, 40, 16, 3, 1}).kernel(Activation::kRelu6));  // channels that fill no vector
  RandomBlock whole({16, 96, 16, 3, 1});
  whole.depthwise = random_convolution(96, 96, 3);
  CHECK_FALSE(whole.kernel(Activation::kRelu6));
  const InvertedKernel kernel = *block.kernel(Activation::kRelu6);
  CHECK_THROWS_AS(kernel(at::zeros({1, 8, 9, 9}), {1, 1, 1, 1}, false), c10::Error);
  CHECK_THROWS_AS(kernel(at::zeros({1, 16, 9, 9}), {0, 0, 0, 0}, true), c10::Error);  // a sum of different sizes
}

}  // namespace
}  // namespace settrain
