// The last layer of a classifier, or its last two.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>

#include "models/model_options.h"
#include "models/model_output.h"

namespace settrain {

/// From features [batch, features] to scores [batch, classes].
class Head : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& features) = 0;
};

/// How a linear head starts. Uniform means in +-1/sqrt(features), normal with a standard deviation of 0.02.
enum class FirstHead {
  kUniform,       // weights and bias, as torch.nn.Linear's
  kZeroBias,      // uniform weights: the DenseNets
  kNormal,        // normal weights, bias 0: ConvNeXt
  kNarrowNormal,  // the same with a deviation of 0.01: MobileNets, VGG and SqueezeNet
  kWideNormal,    // normal weights with a deviation of 0.1, uniform bias: Inception-v3
  kZero,          // both 0: vision transformers
  kByClasses,     // uniform in +-1/sqrt(classes), bias 0: EfficientNets
};

/// The input of a head.
enum class HeadInput {
  kFeatures,  // [batch, features]
  kPixels,    // [batch, features, height, width], as SqueezeNet's
};

/// scores = features weight^T + bias. `weight` is [classes, features], `bias` [classes]. For pixels, a class' score is
/// the mean over the pixels of max(0, its score there), and `weight` is [classes, features, 1, 1].
class LinearHead : public Head {
 public:
  LinearHead(int64_t features, int64_t classes, bool with_bias = true, FirstHead first = FirstHead::kUniform,
             HeadInput input = HeadInput::kFeatures);
  at::Tensor forward(const at::Tensor& features) override;

 protected:
  /// [batch, classes], or for pixels [batch, classes, height, width].
  virtual at::Tensor linear_scores(const at::Tensor& features) const;

 private:
  HeadInput input_;
  at::Tensor weight_, bias_;
};

/// The heads that `model.head` names: one, or two linear ones on the same features (Garcin's thesis, chapter 5), the
/// second for the scores that a multi-label loss trains.
class Heads {
 public:
  /// Registers them in `model` as `name` and, where there are two, `name`_multi.
  Heads(torch::nn::Module& model, const std::string& name, const ModelOptions& options, int64_t features,
        int64_t classes, FirstHead first = FirstHead::kUniform, HeadInput input = HeadInput::kFeatures);

  /// `x`: [batch, features], or pixels [batch, features, height, width]. The output's features are [batch, features]:
  /// the means of pixels. A normalised head sees nothing else; the others of HeadInput::kPixels see pixels alone.
  /// Throws ShapeError for an x of another shape.
  ///
  /// In the weights' own precision, also where the rest of the network computes in bf16: bf16 has 8 bits, and of a
  /// thousand scores many would be equal.
  ModelOutput operator()(const at::Tensor& x) const;

 private:
  int64_t features_;
  bool sees_pixels_;
  std::shared_ptr<Head> first_, second_;  // `second_` may be null
};

}  // namespace settrain
