// Convolutions with the norm and the activation behind them, of which most networks are made.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "models/layers.h"

namespace settrain {

/// A convolution's padding and first weights.
enum class ConvolutionKind {
  kTorchvision,  // a Convolution
  kTensorFlow,   // first weights as there; padded as TensorFlow pads: the output has ceil(size / stride) pixels
  kUniform,      // padded as a Convolution; uniform in +-1/sqrt(in / groups * kernel^2), as torch.nn.Conv2d's
};

struct UnitOptions {
  ConvolutionKind kind = ConvolutionKind::kTorchvision;
  BatchNormOptions norm = {};
};

struct UnitShape {
  int64_t in, out, kernel, stride = 1, groups = 1;
  Activation activation = Activation::kNone;
};

/// A convolution without bias, a batch norm and an activation.
class ConvolutionUnit {
 public:
  /// Registers the convolution and the norm in `owner` by their names. With a shape, the convolution is square.
  ConvolutionUnit(torch::nn::Module& owner, const std::string& convolution, const std::string& norm,
                  const UnitOptions& options, const UnitShape& shape);
  ConvolutionUnit(torch::nn::Module& owner, const std::string& convolution, const std::string& norm,
                  std::shared_ptr<Convolution> layer, int64_t out, Activation activation,
                  const BatchNormOptions& options = {});

  at::Tensor operator()(const at::Tensor& x) const { return convolution_->normed(x, activation_, {}, 0); }

  /// activation(norm(convolution(x)) + added): a residual block's last unit, before whose sum an image's own part is
  /// dropped with probability `skipped`.
  at::Tensor onto(const at::Tensor& added, const at::Tensor& x, double skipped) const {
    return convolution_->normed(x, activation_, added, skipped);
  }

  const Convolution& convolution() const { return *convolution_; }
  Activation activation() const { return activation_; }

 private:
  Activation activation_;
  std::shared_ptr<Convolution> convolution_;
};

/// Such a unit as a layer. Names: 0 and 1.
class UnitLayer : public Layer {
 public:
  UnitLayer(const UnitOptions& options, const UnitShape& shape) : unit_(*this, "0", "1", options, shape) {}

  at::Tensor forward(const at::Tensor& x) override { return unit_(x); }

 private:
  ConvolutionUnit unit_;
};

}  // namespace settrain
