// Winograd's convolutions against ordinary ones in double.
#include "models/winograd.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "models/packed_weights.h"
#include "tests/support/catch2.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

constexpr double kTolerance = 2e-5;  // of values of about 1

// Weights that keep the size of what they convolve.
at::Tensor weights(int64_t out, int64_t in) {
  return at::randn({out, in, 3, 3}) / std::sqrt(9.0 * static_cast<double>(in));
}

at::Tensor channels_last(const at::Tensor& x) {
  return x.contiguous(at::MemoryFormat::ChannelsLast);
}

bool is_possible() {
  if (suits_winograd(at::zeros({16, 16, 3, 3}), 32, 32)) return true;
  WARN("skipped: the processor has no AVX-512");
  return false;
}

TEST_CASE("Winograd's convolution is the ordinary one, for any size, batch and number of threads") {
  if (!is_possible()) return;
  const c10::InferenceMode inference;
  at::manual_seed(1);
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    for (const auto& [images, in, out, height, width] : std::vector<std::array<int64_t, 5>>{{1, 16, 16, 13, 16},
                                                                                            {1, 32, 16, 14, 14},
                                                                                            {2, 16, 48, 31, 17},
                                                                                            {5, 64, 64, 56, 56},
                                                                                            {16, 16, 32, 15, 64}}) {
      CAPTURE(threads, images, in, out, height, width);
      const at::Tensor weight = weights(out, in), bias = at::randn({out});
      const at::Tensor x = channels_last(at::randn({images, in, height, width}));
      const at::Tensor added = channels_last(at::randn({images, out, height, width}));
      const at::Tensor expected = at::conv2d(x.to(at::kDouble), weight.to(at::kDouble), bias.to(at::kDouble), 1, 1);
      const at::Tensor packed = winograd_weight(weight);
      CHECK(test::relative_error(winograd_convolution(x, packed, bias, false, {}), expected) <= kTolerance);
      CHECK(test::relative_error(winograd_convolution(x, packed, bias, true, {}), expected.relu()) <= kTolerance);
      CHECK(test::relative_error(winograd_convolution(x, packed, bias, true, added.clone()),
                                 (expected + added).relu()) <= kTolerance);
      at::Tensor sum = added.clone();
      CHECK(winograd_convolution(x, packed, bias, false, sum).is_same(sum));
      CHECK(test::relative_error(sum, expected + added) <= kTolerance);
    }
  }
  at::set_num_threads(1);
}

TEST_CASE("Winograd's convolution keeps NaN behind a ReLU, in the tiles that see it alone") {
  if (!is_possible()) return;
  const c10::InferenceMode inference;
  at::manual_seed(2);
  const at::Tensor weight = winograd_weight(weights(16, 16)), bias = at::randn({16});
  at::Tensor x = channels_last(at::randn({2, 16, 16, 16}));
  const at::Tensor clean = winograd_convolution(x, weight, bias, true, {}).clone();
  x[1][3][5][5].fill_(std::numeric_limits<double>::quiet_NaN());
  const at::Tensor got = winograd_convolution(x, weight, bias, true, {});
  CHECK(got[0].equal(clean[0]));
  CHECK(got[1].narrow(1, 4, 4).narrow(2, 4, 4).isnan().all().item<bool>());
  CHECK(got[1].narrow(1, 8, 8).equal(clean[1].narrow(1, 8, 8)));
}

TEST_CASE("a packed convolution takes Winograd's way for large images, and oneDNN's for small ones, in any order") {
  const c10::InferenceMode inference;
  at::manual_seed(3);
  const at::Tensor weight = weights(32, 16), bias = at::randn({32});
  for (const bool small_first : {false, true}) {
    PackedConvolution convolution(weight, bias, at::kFloat);
    for (const int64_t size : {small_first ? 6 : 20, small_first ? 20 : 6}) {
      const at::Tensor x = at::randn({2, 16, size, size}), added = at::randn({2, 32, size, size});
      const at::Tensor expected = at::conv2d(x.to(at::kDouble), weight.to(at::kDouble), bias.to(at::kDouble), 1, 1);
      const ConvolutionGeometry geometry{1, 1, 1};
      CAPTURE(small_first, size);
      CHECK(test::relative_error(convolution(x, geometry, Activation::kSilu, {}), at::silu(expected)) <= kTolerance);
      CHECK(test::relative_error(convolution(x, geometry, Activation::kSilu, added.clone()),
                                 at::silu(expected + added)) <= kTolerance);
      CHECK(test::relative_error(convolution(x, geometry, Activation::kRelu, added.clone()),
                                 at::relu(expected + added)) <= kTolerance);
    }
  }
}

}  // namespace
}  // namespace settrain
