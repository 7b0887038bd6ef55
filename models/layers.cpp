#include "models/layers.h"

#include <ATen/Context.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <utility>

#include "models/cost.h"
#include "models/recompute.h"
#include "src/core/error.h"

namespace settrain {
namespace {

// ATen has no shape functions in C++ for convolutions, which tensors without storage would need.
at::Tensor shape_of_convolution(const at::Tensor& x, const at::Tensor& weight, const ConvolutionGeometry& geometry) {
  const auto out = [&](int64_t size) { return (size + 2 * geometry.padding - weight.size(2)) / geometry.stride + 1; };
  return at::empty({x.size(0), weight.size(0), out(x.size(2)), out(x.size(3))}, x.options());
}

}  // namespace

at::Tensor convolved(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     const ConvolutionGeometry& geometry) {
  if (!x.is_meta()) {
    return at::conv2d(x, weight, bias, geometry.stride, geometry.padding, /*dilation=*/1, geometry.groups);
  }
  at::Tensor out = shape_of_convolution(x, weight, geometry);
  CostCounter::add(weight.numel() * out.size(2) * out.size(3));
  return out;
}

Convolution::Convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride, Fan fan, int64_t groups)
    : geometry_{stride, kernel / 2, groups} {
  const int64_t inputs = (fan == Fan::kIn ? in : out) * kernel * kernel;
  at::Tensor weight = at::empty({out, in / groups, kernel, kernel}, CostCounter::device());
  weight_ = register_parameter("weight", weight.normal_(0, std::sqrt(2.0 / static_cast<double>(inputs))));
}

at::Tensor Convolution::forward(const at::Tensor& x) {
  return convolved(x, weight_, {}, geometry_);
}

constexpr double kMomentum = 0.1;  // of running statistics
constexpr double kEpsilon = 1e-5;

BatchNorm::BatchNorm(int64_t channels) {
  const at::TensorOptions options(CostCounter::device());
  weight_ = register_parameter("weight", at::ones(channels, options));
  bias_ = register_parameter("bias", at::zeros(channels, options));
  running_mean_ = register_buffer("running_mean", at::zeros(channels, options));
  running_var_ = register_buffer("running_var", at::ones(channels, options));
  num_batches_tracked_ = register_buffer("num_batches_tracked", at::zeros({}, options.dtype(at::kLong)));
}

at::Tensor BatchNorm::forward(const at::Tensor& x) {
  if (is_training() && x.numel() == x.size(1)) {
    throw DataError(
        "a batch of one image, of which one pixel is left in the network, has no variance to train batch norm with: set "
        "data.drop_last: true or another data.batch_size, or take larger images");
  }
  if (x.is_meta()) return at::empty_like(x);
  const bool again = is_training() && Recomputation::is_under_way();  // the first time has updated the statistics
  const auto normalised = [&](const at::Tensor& mean, const at::Tensor& variance, double momentum) {
    return at::batch_norm(x, weight_, bias_, mean, variance, is_training(), momentum, kEpsilon,
                          at::globalContext().userEnabledCuDNN());
  };
  if (is_training() && sum_) return normalised_together(x);
  if (again) return normalised({}, {}, kMomentum);
  // With a momentum of 1 the batch's statistics themselves are what is kept.
  if (is_training() && recorded_mean_.defined()) return normalised(recorded_mean_, recorded_var_, 1);
  if (is_training()) num_batches_tracked_ += 1;
  return normalised(running_mean_, running_var_, kMomentum);
}

// In float32 at least, by the mean first: a variance from sums of squares would cancel.
at::Tensor BatchNorm::normalised_together(const at::Tensor& x) {
  const at::Tensor values = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
  const std::vector<int64_t> over{0, 2, 3}, shape{1, channels(), 1, 1};
  const int64_t mine = x.numel() / channels();
  const int64_t all = sum_(at::full({1}, mine, at::kLong)).item<int64_t>();
  const at::Tensor mean = shared_sum(values.sum(over), sum_) / all;
  const at::Tensor centred = values - mean.view(shape);
  const at::Tensor variance = shared_sum(centred.square().sum(over), sum_) / all;
  if (recorded_mean_.defined() && !Recomputation::is_under_way()) {
    const c10::NoGradGuard no_grad;
    recorded_mean_.copy_(mean);
    recorded_var_.copy_(variance * all / (all - 1));
  }
  const at::Tensor scale = weight_ * (variance + kEpsilon).rsqrt();
  return (centred * scale.view(shape) + bias_.view(shape)).to(x.scalar_type());
}

void BatchNorm::record_in(const at::Tensor& mean, const at::Tensor& variance) {
  recorded_mean_ = mean;
  recorded_var_ = variance;
}

void BatchNorm::update(const at::Tensor& mean, const at::Tensor& variance) {
  num_batches_tracked_ += 1;
  running_mean_.mul_(1 - kMomentum).add_(mean, kMomentum);
  running_var_.mul_(1 - kMomentum).add_(variance, kMomentum);
}

void Stage::add(const std::string& name, std::shared_ptr<Layer> layer) {
  layers_.push_back(register_module(name, std::move(layer)));
}

at::Tensor Stage::forward(const at::Tensor& x) {
  // Not within a layer that is itself computed again.
  const bool recompute = recompute_ && c10::GradMode::is_enabled() && !Recomputation::is_under_way();
  at::Tensor y = x;
  for (const auto& layer : layers_) y = recompute ? forward_without_keeping(*layer, y) : layer->forward(y);
  return y;
}

at::Tensor rectified(at::Tensor x) {
  return at::relu_(x);
}

at::Tensor global_average(const at::Tensor& x) {
  return x.mean(at::IntArrayRef{2, 3}, /*keepdim=*/false, x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
}

}  // namespace settrain
