#include "models/inverted_residual.h"

#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/sigmoid.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace settrain {
namespace {

/// x times a factor in [0, 1] for every channel of an image, from the means of all channels: gate(fc2(activation(fc1(
/// means)))) (Hu et al., "Squeeze-and-Excitation Networks", 2018). With SiLU and sigmoid, as in EfficientNets; the hard
/// one has ReLU and the sigmoid's piecewise linear form, as MobileNetV3.
class SqueezeExcitation : public Layer {
 public:
  SqueezeExcitation(int64_t channels, int64_t squeezed, bool is_hard)
      : is_hard_(is_hard),
        fc1_(register_module("fc1", pointwise(channels, squeezed))),
        fc2_(register_module("fc2", pointwise(squeezed, channels))) {}

  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor means = x.mean(at::IntArrayRef{2, 3}, /*keepdim=*/true);
    const at::Tensor gates = fc2_->forward(fc1_->forward_into(is_hard_ ? Activation::kRelu : Activation::kSilu, means));
    return (is_hard_ ? at::hardsigmoid(gates) : at::sigmoid(gates)) * x;
  }

 private:
  static std::shared_ptr<Convolution> pointwise(int64_t in, int64_t out) {
    return std::make_shared<BiasedConvolution>(
        normal_values({out, in, 1, 1}, std::sqrt(2.0 / static_cast<double>(out))), ConvolutionGeometry{1, 0, 1});
  }

  bool is_hard_;
  std::shared_ptr<Convolution> fc1_, fc2_;
};

}  // namespace

int64_t channels_of_eight(double channels) {
  const auto rounded = std::max<int64_t>(8, static_cast<int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + 8 : rounded;
}

InvertedResidual::InvertedResidual(InvertedNames names, const UnitOptions& options, const InvertedShape& shape,
                                   double skipped)
    : skipped_(skipped), adds_input_(shape.stride == 1 && shape.in == shape.out), is_fused_(shape.is_fused) {
  using enum InvertedNames;
  const auto block = names == kLite
                         ? nullptr
                         : register_module(names == kConv ? "conv" : "block", std::make_shared<torch::nn::Module>());
  size_t parts = 0;
  const auto add = [&](const char* convolution, const char* norm, const UnitShape& unit) {
    if (names == kLite) {
      units_.emplace_back(*this, convolution, norm, options, unit);
    } else if (names == kConv && unit.activation == Activation::kNone) {
      units_.emplace_back(*block, std::to_string(parts), std::to_string(parts + 1), options, unit);
    } else {
      const auto part = block->register_module(std::to_string(parts++), std::make_shared<torch::nn::Module>());
      units_.emplace_back(*part, "0", "1", options, unit);
    }
  };
  const bool expands = shape.inner != shape.in;
  if (shape.is_fused) {
    add("", "", {shape.in, expands ? shape.inner : shape.out, shape.kernel, shape.stride, 1, shape.activation});
    is_one_unit_ = !expands;
    if (is_one_unit_) return;
  } else {
    if (expands) add("_expand_conv", "_bn0", {shape.in, shape.inner, 1, 1, 1, shape.activation});
    add("_depthwise_conv", "_bn1",
        {shape.inner, shape.inner, shape.kernel, shape.stride, shape.inner, shape.activation});
    if (shape.squeezed > 0) {
      const bool is_hard = shape.activation != Activation::kSilu;
      excitation_ = block->register_module(std::to_string(parts++),
                                           std::make_shared<SqueezeExcitation>(shape.inner, shape.squeezed, is_hard));
    }
  }
  add("_project_conv", "_bn2", {shape.inner, shape.out, 1});
}

void InvertedResidual::prepare(InferenceForm form) {
  Layer::prepare(form);
  kernel_.reset();
  if (form != InferenceForm::kFast || is_fused_ || excitation_ || depthwise().scalar_type() != at::kFloat) return;
  const FoldedConvolution expand = units_.size() == 3 ? units_[0].convolution().folded() : FoldedConvolution{};
  kernel_ = InvertedKernel::find(expand, depthwise().folded(), units_.back().convolution().folded(),
                                 depthwise().stride(), units_.front().activation());
}

at::Tensor InvertedResidual::forward(const at::Tensor& x) {
  if (kernel_) return (*kernel_)(x, depthwise().padding(x.size(2), x.size(3)), adds_input_);
  at::Tensor y = x;
  for (size_t i = 0; i < units_.size(); ++i) {
    const bool is_last = i + 1 == units_.size();
    if (is_last && excitation_) y = excitation_->forward(y);
    if (is_last && adds_input_ && !is_one_unit_) return units_[i].onto(x, y, is_training() ? skipped_ : 0);
    y = units_[i](y);
  }
  // One unit activates before the sum.
  return adds_input_ ? drop_path(y, is_training() ? skipped_ : 0) + x : y;
}

}  // namespace settrain
