#include "models/packed_weights.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "models/convolution_kernels.h"

namespace settrain {
namespace {

using Scalars = c10::List<std::optional<at::Scalar>>;
using OptionalTensor = std::optional<at::Tensor>;
using OptionalText = std::optional<std::string_view>;

constexpr std::array<int64_t, 2> kDilation{1, 1};
constexpr ConvolutionGeometry kPointwise{1, 0, 1};

/// An operator of LibTorch that has no C++ function. PyTorch's own compiler (torch/_inductor) calls it by this name.
template <class Signature>
auto find_operator(const char* name, const char* overload = "") {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).typed<Signature>();
}

/// An activation by the words of oneDNN's operators: its name, its numbers, and which of several formulas.
struct ActivationWords {
  std::string_view name = "none";
  Scalars numbers{};
  OptionalText formula{};
};

ActivationWords words_of(Activation activation) {
  ActivationWords words;
  switch (activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      words.name = "relu";
      break;
    case Activation::kRelu6:
      words.name = "hardtanh";
      words.numbers.push_back(at::Scalar(0.0));
      words.numbers.push_back(at::Scalar(6.0));
      break;
    case Activation::kSilu:
      words.name = "swish";
      break;
    case Activation::kHardSwish:
      words.name = "hardswish";
      break;
    case Activation::kGelu:
      words.name = "gelu";
      words.formula = "none";  // by the error function
      break;
  }
  return words;
}

bool can_pack(const at::Tensor& weight, at::ScalarType type) {
  return weight.is_cpu() && at::globalContext().userEnabledMkldnn() && at::Context::hasMKLDNN() &&
         (type == at::kFloat || type == at::kBFloat16);
}

/// Whether oneDNN adds it within the operation. It refuses one channel or one pixel, whose strides fit both layouts.
bool is_summand(const at::Tensor& added, at::ScalarType type) {
  return added.defined() && added.scalar_type() == type && added.size(1) > 1 && added.size(2) * added.size(3) > 1;
}

/// Adds what the operation has left out.
at::Tensor finished(at::Tensor product, const at::Tensor& added, Activation activation) {
  return activated(added.defined() ? product + added : std::move(product), activation);
}

at::Tensor packed_convolution(const at::Tensor& weight, const ConvolutionGeometry& geometry, at::IntArrayRef sizes) {
  static const auto pack =
      find_operator<at::Tensor(const at::Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t,
                               c10::OptionalArrayRef<int64_t>)>("mkldnn::_reorder_convolution_weight");
  const std::array<int64_t, 2> padding{geometry.padding, geometry.side_padding},
      stride{geometry.stride, geometry.stride};
  return pack.call(weight, padding, stride, kDilation, geometry.groups, sizes);
}

/// Whether a convolution of one pixel is faster than MKL's product of float32 matrices.
bool convolves_faster() {
#if defined(__x86_64__)
  return kernels::are_supported() && !__builtin_cpu_is("intel");
#else
  return false;
#endif
}

/// [..., features] as the pixels of an image, [1, features, rows, 1] with the channels last.
at::Tensor as_pixels(const at::Tensor& x) {
  return x.reshape({1, -1, 1, x.size(-1)}).permute({0, 3, 1, 2});
}

}  // namespace

at::ScalarType packed_type(InferenceForm form, const at::Tensor& weight) {
  return form == InferenceForm::kBf16 ? at::kBFloat16 : weight.scalar_type();
}

PackedConvolution::PackedConvolution(const at::Tensor& weight, const at::Tensor& bias, at::ScalarType type)
    : type_(type),
      is_packed_(can_pack(weight, type)),
      weight_(weight.to(type).contiguous(at::MemoryFormat::ChannelsLast)),
      bias_(bias.to(type).contiguous()) {}

at::Tensor PackedConvolution::operator()(const at::Tensor& x, const ConvolutionGeometry& geometry,
                                         Activation activation, const at::Tensor& added) {
  using Unary = at::Tensor(const at::Tensor&, const at::Tensor&, const OptionalTensor&, at::IntArrayRef,
                           at::IntArrayRef, at::IntArrayRef, int64_t, std::string_view, Scalars, OptionalText);
  using BinaryInPlace = at::Tensor&(at::Tensor&, const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                                    at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t, std::string_view,
                                    std::optional<at::Scalar>, OptionalText, Scalars, OptionalText);
  const std::array<int64_t, 2> padding{geometry.padding, geometry.side_padding},
      stride{geometry.stride, geometry.stride};
  const at::Tensor input = x.to(type_).contiguous(at::MemoryFormat::ChannelsLast);
  if (!is_packed_) {
    return finished(at::conv2d(input, weight_, bias_, stride, padding, kDilation, geometry.groups), added, activation);
  }
  std::call_once(once_, [&] {
    kernel_ = find_kernel(weight_, geometry, x.size(2), x.size(3));
    weight_ = kernel_ ? kernel_->lay_out(weight_) : packed_convolution(weight_, geometry, input.sizes());
  });
  if (kernel_) return by_kernel(input, activation, added);
  static const auto convolve = find_operator<Unary>("mkldnn::_convolution_pointwise");
  // In place oneDNN accumulates onto what is there, which is faster than an addition of its own behind the product.
  static const auto convolve_and_add = find_operator<BinaryInPlace>("mkldnn::_convolution_pointwise_", "binary");
  if (!is_summand(added, type_)) {
    const auto [name, numbers, formula] = words_of(added.defined() ? Activation::kNone : activation);
    const at::Tensor y =
        convolve.call(input, weight_, bias_, padding, stride, kDilation, geometry.groups, name, numbers, formula);
    return added.defined() ? finished(y, added, activation) : y;
  }
  const bool rectifies = activation == Activation::kRelu;  // no other activation is taken behind a sum
  at::Tensor sum = added.contiguous(at::MemoryFormat::ChannelsLast);
  convolve_and_add.call(sum, input, weight_, bias_, padding, stride, kDilation, geometry.groups, "add", 1,
                        rectifies ? OptionalText("relu") : std::nullopt, Scalars(), std::nullopt);
  return rectifies ? sum : activated(std::move(sum), activation);
}

at::Tensor PackedConvolution::by_kernel(const at::Tensor& x, Activation activation, const at::Tensor& added) const {
  TORCH_CHECK(x.is_cpu() && x.size(1) == weight_.size(-2), "a convolution of ", weight_.size(-2), " channels gets ",
              x.sizes(), " on ", x.device());
  TORCH_CHECK(!added.defined() || added.sizes() == at::IntArrayRef({x.size(0), weight_.size(-1), x.size(2), x.size(3)}),
              added.sizes(), " is added to a convolution of ", x.sizes());
  const bool adds = is_summand(added, type_);
  const std::optional<ValueRange> range = range_of(activation);
  const bool is_whole = range && adds == added.defined();
  at::Tensor y = kernel_->convolve(x, weight_, bias_, is_whole ? *range : ValueRange{},
                                   adds ? added.contiguous(at::MemoryFormat::ChannelsLast) : at::Tensor());
  return is_whole ? y : finished(std::move(y), adds ? at::Tensor() : added, activation);
}

PackedLinear::PackedLinear(const at::Tensor& weight, const at::Tensor& bias, at::ScalarType type) {
  if (can_pack(weight, type) && (type == at::kBFloat16 || convolves_faster())) {
    convolution_.emplace(weight.unsqueeze(2).unsqueeze(3), bias, type);
  } else {
    weight_ = weight.to(type);
    bias_ = bias.to(type);
  }
}

at::Tensor PackedLinear::operator()(const at::Tensor& x, Activation activation, const at::Tensor& added) {
  if (!convolution_) {
    at::Tensor product = at::linear(x.to(weight_.scalar_type()), weight_, bias_);
    if (added.defined()) product.add_(added);
    return activated(std::move(product), activation);
  }
  const at::Tensor y =
      (*convolution_)(as_pixels(x), kPointwise, activation, added.defined() ? as_pixels(added) : at::Tensor());
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = y.size(1);
  return y.permute({0, 2, 3, 1}).reshape(sizes);
}

}  // namespace settrain
