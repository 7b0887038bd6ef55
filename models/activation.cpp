#include "models/activation.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>

namespace settrain {

at::Tensor activated(at::Tensor x, Activation by) {
  constexpr double kMost = 6;
  if (by == Activation::kNone || x.is_meta()) return x;
  if (by == Activation::kRelu) return at::relu_(x);
  if (by == Activation::kRelu6) return at::hardtanh_(x, 0, kMost);
  if (by == Activation::kGelu) return at::gelu(x);
  return by == Activation::kSilu ? at::silu(x) : at::hardswish(x);
}

}  // namespace settrain
