#include "models/convolution_unit.h"

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
class SamePaddedConvolution : public Convolution {
 public:
  SamePaddedConvolution(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups)
      : Convolution(he_values(out, in / groups, kernel), {stride, 0, groups}) {}

  Padding padding(int64_t height, int64_t width) const override {
    const int64_t down = both_sides(height), across = both_sides(width);
    return {down / 2, down - down / 2, across / 2, across - across / 2};
  }

 private:
  int64_t both_sides(int64_t size) const {
    const int64_t out = (size + stride() - 1) / stride();
    return std::max<int64_t>((out - 1) * stride() + kernel() - size, 0);
  }
};

std::shared_ptr<Convolution> unit_convolution(ConvolutionKind kind, const UnitShape& shape) {
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

}  // namespace

ConvolutionUnit::ConvolutionUnit(torch::nn::Module& owner, const std::string& convolution, const std::string& norm,
                                 const UnitOptions& options, const UnitShape& shape)
    : ConvolutionUnit(owner, convolution, norm, unit_convolution(options.kind, shape), shape.out, shape.activation,
                      options.norm) {}

ConvolutionUnit::ConvolutionUnit(torch::nn::Module& owner, const std::string& convolution, const std::string& norm,
                                 std::shared_ptr<Convolution> layer, int64_t out, Activation activation,
                                 const BatchNormOptions& options)
    : activation_(activation), convolution_(owner.register_module(convolution, std::move(layer))) {
  convolution_->set_norm(owner.register_module(norm, std::make_shared<BatchNorm>(out, options)));
}

}  // namespace settrain
