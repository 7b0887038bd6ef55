#include "models/layers.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/cost.h"
#include "models/norm_kernel.h"
#include "src/core/error.h"

namespace settrain {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct KeptSum : torch::CustomClassHolder {
  explicit KeptSum(SumOverProcesses kept) : sum(std::move(kept)) {}

  SumOverProcesses sum;
};

/// sum(mine), differentiable: the gradient of `mine` is the sum of the processes' gradients, since their losses are
/// added.
class SharedSum : public torch::autograd::Function<SharedSum> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& mine, const SumOverProcesses& sum) {
    context->saved_data["sum"] = at::IValue::make_capsule(c10::make_intrusive<KeptSum>(sum));
    return sum(mine);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto kept = c10::static_intrusive_pointer_cast<KeptSum>(context->saved_data["sum"].toCapsule());
    return {kept->sum(gradients[0].contiguous()), at::Tensor()};
  }
};

}  // namespace

at::Tensor convolved(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     const ConvolutionGeometry& geometry) {
  if (!x.is_meta()) {
    return at::conv2d(x, weight, bias, geometry.stride, {geometry.padding, geometry.side_padding}, /*dilation=*/1,
                      geometry.groups);
  }
  // ATen has no shape functions in C++ for convolutions, which tensors without storage would need.
  const auto out = [&](int64_t dim, int64_t padding) {
    return (x.size(dim) + 2 * padding - weight.size(dim)) / geometry.stride + 1;
  };
  const int64_t height = out(2, geometry.padding), width = out(3, geometry.side_padding);
  CostCounter::add(weight.numel() * height * width, weight);
  return at::empty({x.size(0), weight.size(0), height, width}, x.options());
}

Convolution::Convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride, Fan fan, int64_t groups)
    : geometry_{stride, kernel / 2, groups} {
  const int64_t inputs = (fan == Fan::kIn ? in : out) * kernel * kernel;
  at::Tensor weight = at::empty({out, in / groups, kernel, kernel}, CostCounter::device());
  weight_ = register_parameter("weight", weight.normal_(0, std::sqrt(2.0 / static_cast<double>(inputs))));
}

Convolution::Convolution(const at::Tensor& weight, const ConvolutionGeometry& geometry, const at::Tensor& bias)
    : geometry_(geometry), weight_(register_parameter("weight", weight)) {
  if (bias.defined()) bias_ = register_parameter("bias", bias);
}

void Convolution::prepare(InferenceForm form) {
  Layer::prepare(form);
  packed_.reset();
  if (!is_prepared()) return;
  const auto [weight, bias] = folded();
  packed_.emplace(weight, bias, packed_type(form, weight_));
}

FoldedConvolution Convolution::folded() const {
  const c10::NoGradGuard no_grad;
  const at::Tensor bias = bias_.defined() ? bias_ : at::zeros({weight_.size(0)}, weight_.options());
  if (!norm_) return {weight_, bias};
  const auto [scale, shift] = norm_->factors();
  return {weight_ * scale.view({-1, 1, 1, 1}), bias * scale + shift};
}

at::Tensor Convolution::padded(const at::Tensor& x, ConvolutionGeometry& geometry) const {
  const auto [top, bottom, left, right] = padding(x.size(2), x.size(3));
  const bool is_even = top == bottom && left == right;
  geometry.padding = is_even ? top : 0;
  geometry.side_padding = is_even ? left : 0;
  return is_even ? x : at::constant_pad_nd(x, {left, right, top, bottom});
}

at::Tensor Convolution::plain(const at::Tensor& x) const {
  ConvolutionGeometry left = geometry_;
  const at::Tensor in = padded(x, left);
  return convolved(in, weight_, bias_, left);
}

at::Tensor Convolution::packed(const at::Tensor& x, Activation activation, const at::Tensor& added) {
  ConvolutionGeometry left = geometry_;
  const at::Tensor in = padded(x, left);
  return (*packed_)(in, left, activation, added);
}

at::Tensor Convolution::forward_into(Activation activation, const at::Tensor& x) {
  return packed_ ? packed(x, activation, {}) : activated(plain(x), activation);
}

at::Tensor Convolution::normed(const at::Tensor& x, Activation activation, const at::Tensor& added, double skipped) {
  if (packed_) return packed(x, activation, added);
  const at::Tensor y = norm_->forward(plain(x));
  return activated(added.defined() ? drop_path(y, skipped).add_(added) : y, activation);
}

BatchNorm::BatchNorm(int64_t channels, BatchNormOptions norm) : options_(norm) {
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
  const bool again = is_training() && is_recomputing();  // the first time has updated the statistics
  const auto normalised = [&](const at::Tensor& mean, const at::Tensor& variance, double momentum) {
    return at::batch_norm(x, weight_, bias_, mean, variance, is_training(), momentum, options_.epsilon,
                          at::globalContext().userEnabledCuDNN());
  };
  if (is_training() && sum_) return normalised_together(x);
  if (again) return normalised({}, {}, options_.momentum);
  // With a momentum of 1 the batch's statistics themselves are kept.
  if (is_training() && recorded_mean_.defined()) return normalised(recorded_mean_, recorded_var_, 1);
  if (is_training()) num_batches_tracked_ += 1;
  return normalised(running_mean_, running_var_, options_.momentum);
}

std::pair<at::Tensor, at::Tensor> BatchNorm::factors() const {
  const c10::NoGradGuard no_grad;
  const at::Tensor scale = weight_.to(at::kDouble) * (running_var_.to(at::kDouble) + options_.epsilon).rsqrt();
  return {scale, bias_.to(at::kDouble) - running_mean_.to(at::kDouble) * scale};
}

void BatchNorm::prepare(InferenceForm form) {
  Layer::prepare(form);
  scale_ = at::Tensor();
  shift_ = at::Tensor();
  if (!is_prepared()) return;
  const auto [scale, shift] = factors();
  scale_ = scale.to(at::kFloat);
  shift_ = shift.to(at::kFloat);
}

template <class T>
at::Tensor BatchNorm::rectified_rows(const at::Tensor& x) const {
  const at::Tensor y = at::empty(x.sizes(), x.options(), at::MemoryFormat::ChannelsLast);
  const int64_t rows = x.size(0) * x.size(2) * x.size(3), stride = x.stride(3);
  constexpr int64_t kGrain = 16384;  // numbers of a task
  const auto *scale = scale_.const_data_ptr<float>(), *shift = shift_.const_data_ptr<float>();
  const T* from = x.const_data_ptr<T>();
  T* to = y.mutable_data_ptr<T>();
  at::parallel_for(0, rows, std::max<int64_t>(1, kGrain / channels()), [&](int64_t begin, int64_t end) {
    rectify_norm_rows(from + begin * stride, stride, end - begin, channels(), scale, shift, to + begin * channels(),
                      channels());
  });
  return y;
}

at::Tensor BatchNorm::rectified_norm(const at::Tensor& x) {
  // Pixels one behind the other, each with its channels together: where they are a part of more channels, too.
  const bool has_rows =
      x.stride(1) == 1 && x.stride(2) == x.size(3) * x.stride(3) && x.stride(0) == x.size(2) * x.stride(2);
  if (scale_.defined() && x.is_cpu() && has_rows) {
    if (x.scalar_type() == at::kFloat) return rectified_rows<float>(x);
    if (x.scalar_type() == at::kBFloat16) return rectified_rows<c10::BFloat16>(x);
  }
  return rectified(forward(x));
}

// In float32 at least, by the mean first: a variance from sums of squares would cancel.
at::Tensor BatchNorm::normalised_together(const at::Tensor& x) {
  const at::Tensor values = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
  const std::vector<int64_t> over{0, 2, 3}, shape{1, channels(), 1, 1};
  const int64_t mine = x.numel() / channels();
  const int64_t all = sum_(at::full({1}, mine, at::kLong)).item<int64_t>();
  const at::Tensor mean = SharedSum::apply(values.sum(over), sum_) / all;
  const at::Tensor centred = values - mean.view(shape);
  const at::Tensor variance = SharedSum::apply(centred.square().sum(over), sum_) / all;
  if (recorded_mean_.defined() && !is_recomputing()) {
    const c10::NoGradGuard no_grad;
    recorded_mean_.copy_(mean);
    recorded_var_.copy_(variance * all / (all - 1));
  }
  const at::Tensor scale = weight_ * (variance + options_.epsilon).rsqrt();
  return (centred * scale.view(shape) + bias_.view(shape)).to(x.scalar_type());
}

void BatchNorm::record_in(const at::Tensor& mean, const at::Tensor& variance) {
  recorded_mean_ = mean;
  recorded_var_ = variance;
}

void BatchNorm::update(const at::Tensor& mean, const at::Tensor& variance) {
  num_batches_tracked_ += 1;
  running_mean_.mul_(1 - options_.momentum).add_(mean, options_.momentum);
  running_var_.mul_(1 - options_.momentum).add_(variance, options_.momentum);
}

at::Tensor normal_values(at::IntArrayRef sizes, double deviation) {
  return at::empty(sizes, CostCounter::device()).normal_(0, deviation);
}

at::Tensor uniform_values(at::IntArrayRef sizes, double bound) {
  return at::empty(sizes, CostCounter::device()).uniform_(-bound, bound);
}

at::Tensor linear_map(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (x.is_meta()) CostCounter::add(x.numel() * weight.size(0), weight);
  return at::linear(x, weight, bias);
}

BiasedConvolution::BiasedConvolution(const at::Tensor& weight, const ConvolutionGeometry& geometry)
    : BiasedConvolution(weight, at::zeros({weight.size(0)}, weight.options()), geometry) {}

LinearLayer::LinearLayer(const at::Tensor& weight, const at::Tensor& bias)
    : weight_(register_parameter("weight", weight)), bias_(register_parameter("bias", bias)) {}

void LinearLayer::prepare(InferenceForm form) {
  Layer::prepare(form);
  packed_.reset();
  if (!is_prepared()) return;
  const c10::NoGradGuard no_grad;
  at::Tensor weight = weight_, bias = bias_;
  if (scale_.defined()) {
    const at::Tensor scale = scale_.flatten().to(at::kDouble);
    weight = weight * scale.unsqueeze(1);
    bias = bias * scale;
  }
  packed_.emplace(weight, bias, packed_type(form, weight_));
}

at::Tensor LinearLayer::forward_into(Activation activation, const at::Tensor& x) {
  return packed_ ? (*packed_)(x, activation, {}) : activated(linear_map(x, weight_, bias_), activation);
}

at::Tensor LinearLayer::scaled_onto(const at::Tensor& added, const at::Tensor& x) {
  return packed_.value()(x, Activation::kNone, added);
}

at::Tensor MaxPool::forward(const at::Tensor& x) {
  return at::max_pool2d(x, size_, stride_, /*padding=*/0, /*dilation=*/1, to_the_end_);
}

LayerNorm::LayerNorm(int64_t features, double epsilon)
    : epsilon_(epsilon),
      weight_(register_parameter("weight", at::ones(features, CostCounter::device()))),
      bias_(register_parameter("bias", at::zeros(features, CostCounter::device()))) {}

at::Tensor LayerNorm::forward(const at::Tensor& x) {
  if (x.is_meta()) return at::empty_like(x);
  return at::layer_norm(x, weight_.sizes(), weight_, bias_, epsilon_, at::globalContext().userEnabledCuDNN());
}

at::Tensor ChannelNorm::forward(const at::Tensor& x) {
  return with_channels_second(LayerNorm::forward(with_channels_last(x)));
}

std::pair<torch::nn::Module*, std::string> place_of_part(torch::nn::Module& root, std::string_view name) {
  torch::nn::Module* inside = &root;
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    const std::string part(name.substr(0, dot));
    const auto children = inside->named_children();
    const auto* found = children.find(part);
    inside = found ? found->get() : inside->register_module(part, std::make_shared<torch::nn::Module>()).get();
    name.remove_prefix(dot + 1);
  }
  return {inside, std::string(name)};
}

std::shared_ptr<Layer> register_part(torch::nn::Module& root, std::string_view name, std::shared_ptr<Layer> layer) {
  const auto [inside, part] = place_of_part(root, name);
  return inside->register_module(part, std::move(layer));
}

at::Tensor with_channels_last(const at::Tensor& x) {
  return x.permute({0, 2, 3, 1});
}

at::Tensor with_channels_second(const at::Tensor& x) {
  return x.permute({0, 3, 1, 2});
}

at::Tensor drop_path(const at::Tensor& x, double p) {
  if (p == 0 || x.is_meta()) return x;
  std::vector<int64_t> one_each(static_cast<size_t>(x.dim()), 1);
  one_each.front() = x.size(0);
  return x * at::empty(one_each, x.options()).bernoulli_(1 - p).div_(1 - p);
}

at::Tensor randomly_dropped(const at::Tensor& x, double p) {
  if (p == 0 || x.is_meta()) return x;
  return x * at::empty(x.sizes(), x.options()).bernoulli_(1 - p).div_(1 - p);
}

at::Tensor rectified(at::Tensor x) {
  return at::relu_(x);
}

at::Tensor global_average(const at::Tensor& x) {
  return x.mean(at::IntArrayRef{2, 3}, /*keepdim=*/false, x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
}

}  // namespace settrain
