#include "models/inverted_residual.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace settrain {
namespace {

at::Tensor he_values(int64_t out, int64_t in, int64_t kernel) {
  return normal_values({out, in, kernel, kernel}, std::sqrt(2.0 / static_cast<double>(out * kernel * kernel)));
}

/// A square convolution whose output has ceil(size / stride) pixels, TensorFlow's padding "same": where the number of
/// padding pixels is odd, the last one is on the right and at the bottom. `weight` starts as that of a Convolution.
class SamePaddedConvolution : public Layer {
 public:
  SamePaddedConvolution(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups)
      : geometry_{stride, 0, groups}, weight_(register_parameter("weight", he_values(out, in / groups, kernel))) {}

  at::Tensor forward(const at::Tensor& x) override {
    const int64_t height = padding(x.size(2)), width = padding(x.size(3));
    if (height == width && height % 2 == 0) {
      return convolved(x, weight_, {}, {geometry_.stride, height / 2, geometry_.groups});
    }
    const at::Tensor padded = at::constant_pad_nd(x, {width / 2, width - width / 2, height / 2, height - height / 2});
    return convolved(padded, weight_, {}, geometry_);
  }

 private:
  // On both sides together.
  int64_t padding(int64_t size) const {
    const int64_t out = (size + geometry_.stride - 1) / geometry_.stride;
    return std::max<int64_t>((out - 1) * geometry_.stride + weight_.size(2) - size, 0);
  }

  ConvolutionGeometry geometry_;
  at::Tensor weight_;
};

std::shared_ptr<Layer> unit_convolution(ConvolutionKind kind, const UnitShape& shape) {
  if (kind == ConvolutionKind::kTensorFlow) {
    return std::make_shared<SamePaddedConvolution>(shape.in, shape.out, shape.kernel, shape.stride, shape.groups);
  }
  if (kind == ConvolutionKind::kTorchvision) {
    return std::make_shared<Convolution>(shape.in, shape.out, shape.kernel, shape.stride, Fan::kOut, shape.groups);
  }
  const int64_t in = shape.in / shape.groups, inputs = in * shape.kernel * shape.kernel;
  const at::Tensor weight =
      uniform_values({shape.out, in, shape.kernel, shape.kernel}, 1.0 / std::sqrt(static_cast<double>(inputs)));
  return std::make_shared<Convolution>(weight, ConvolutionGeometry{shape.stride, shape.kernel / 2, shape.groups});
}

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
    const at::Tensor squeezed = fc1_->forward(means);
    if (is_hard_) return at::hardsigmoid(fc2_->forward(rectified(squeezed))) * x;
    return at::sigmoid(fc2_->forward(at::silu(squeezed))) * x;
  }

 private:
  static std::shared_ptr<Layer> pointwise(int64_t in, int64_t out) {
    return std::make_shared<BiasedConvolution>(he_values(out, in, 1), ConvolutionGeometry{1, 0, 1});
  }

  bool is_hard_;
  std::shared_ptr<Layer> fc1_, fc2_;
};

}  // namespace

at::Tensor activated(at::Tensor x, Activation by) {
  constexpr double kMost = 6;
  if (by == Activation::kNone || x.is_meta()) return x;
  if (by == Activation::kRelu) return rectified(std::move(x));
  if (by == Activation::kRelu6) return at::hardtanh_(x, 0, kMost);
  return by == Activation::kSilu ? at::silu(x) : at::hardswish(x);
}

ConvolutionUnit::ConvolutionUnit(torch::nn::Module& owner, const std::string& convolution, const std::string& norm,
                                 const UnitOptions& options, const UnitShape& shape)
    : activation_(shape.activation) {
  convolution_ = owner.register_module(convolution, unit_convolution(options.kind, shape));
  norm_ = owner.register_module(norm, std::make_shared<BatchNorm>(shape.out, options.norm));
}

at::Tensor ConvolutionUnit::operator()(const at::Tensor& x) const {
  return activated(norm_->forward(convolution_->forward(x)), activation_);
}

int64_t channels_of_eight(double channels) {
  const auto rounded = std::max<int64_t>(8, static_cast<int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + 8 : rounded;
}

InvertedResidual::InvertedResidual(InvertedNames names, const UnitOptions& options, const InvertedShape& shape,
                                   double skipped)
    : skipped_(skipped), adds_input_(shape.stride == 1 && shape.in == shape.out) {
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
    if (!expands) return;
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

at::Tensor InvertedResidual::forward(const at::Tensor& x) {
  at::Tensor y = x;
  for (size_t i = 0; i < units_.size(); ++i) {
    const bool is_last = i + 1 == units_.size();
    if (is_last && excitation_) y = excitation_->forward(y);
    y = units_[i](y);
  }
  if (!adds_input_) return y;
  return (is_training() ? drop_path(y, skipped_) : y) + x;
}

}  // namespace settrain
