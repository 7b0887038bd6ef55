#include "models/heads.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>

#include <cmath>
#include <vector>

#include "models/autocast.h"
#include "models/cost.h"
#include "models/layers.h"
#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

// Rows or columns of unit length along `dim`; the floor keeps an all-zero one at zero.
at::Tensor unit_length(const at::Tensor& t, int64_t dim) {
  return t / t.norm(2, dim, /*keepdim=*/true).clamp_min(1e-12);
}

/// factor_j (features weight^T + bias)_j, of which only `factor` [classes] is trained: learnable weight scaling (Kang
/// et al., ICLR 2020, section 4). `factor` starts at 1. For pixels it also scales scores below 0, so that the
/// factor can be multiplied into the weights.
class ScaledHead : public LinearHead {
 public:
  ScaledHead(int64_t features, int64_t classes, bool with_bias, HeadInput input)
      : LinearHead(features, classes, with_bias, FirstHead::kUniform, input) {
    for (at::Tensor& fixed : parameters()) fixed.set_requires_grad(false);
    factor_ = register_parameter("factor", at::ones({classes}, CostCounter::device()));
  }

 private:
  at::Tensor linear_scores(const at::Tensor& features) const override {
    const at::Tensor scores = LinearHead::linear_scores(features);
    return scores.dim() == 2 ? factor_ * scores : factor_.view({-1, 1, 1}) * scores;
  }

  at::Tensor factor_;
};

/// Cosines: both the features and every class' weights are divided by max(norm, 1e-12). No bias. `weight` is [features,
/// classes], transposed against a linear layer's, as in the published checkpoints; it starts uniform in +-1 with
/// columns scaled to norm 1.
class NormalisedHead : public Head {
 public:
  NormalisedHead(int64_t features, int64_t classes) {
    const at::Tensor directions = at::empty({features, classes}, CostCounter::device()).uniform_(-1, 1);
    weight_ = register_parameter("weight", unit_length(directions, 0));
  }

  at::Tensor forward(const at::Tensor& features) override {
    if (features.is_meta()) CostCounter::add(weight_.numel());
    return at::matmul(unit_length(features, 1), unit_length(weight_, 0));
  }

 private:
  at::Tensor weight_;
};

}  // namespace

LinearHead::LinearHead(int64_t features, int64_t classes, bool with_bias, FirstHead first, HeadInput input)
    : input_(input) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(features));
  double weight_bound = bound, deviation = 0;
  if (first == FirstHead::kZero) weight_bound = 0;
  if (first == FirstHead::kByClasses) weight_bound = 1.0 / std::sqrt(static_cast<double>(classes));
  if (first == FirstHead::kNormal) deviation = 0.02;
  if (first == FirstHead::kNarrowNormal) deviation = 0.01;
  if (first == FirstHead::kWideNormal) deviation = 0.1;
  std::vector<int64_t> sizes{classes, features};
  if (input == HeadInput::kPixels) sizes.insert(sizes.end(), {1, 1});
  const at::Tensor weight = at::empty(sizes, CostCounter::device());
  weight_ = register_parameter(
      "weight", deviation > 0 ? weight.normal_(0, deviation) : weight.uniform_(-weight_bound, weight_bound));
  if (!with_bias) return;
  const double bias_bound = first == FirstHead::kUniform || first == FirstHead::kWideNormal ? bound : 0;
  bias_ = register_parameter("bias", at::empty({classes}, CostCounter::device()).uniform_(-bias_bound, bias_bound));
}

at::Tensor LinearHead::forward(const at::Tensor& features) {
  const at::Tensor scores = linear_scores(features);
  return input_ == HeadInput::kPixels ? global_average(rectified(scores)) : scores;
}

at::Tensor LinearHead::linear_scores(const at::Tensor& features) const {
  return input_ == HeadInput::kPixels ? convolved(features, weight_, bias_, {1, 0, 1})
                                      : linear_map(features, weight_, bias_);
}

Heads::Heads(torch::nn::Module& model, const std::string& name, const ModelOptions& options, int64_t features,
             int64_t classes, FirstHead first, HeadInput input)
    : features_(features),
      sees_pixels_(input == HeadInput::kPixels && options.head != ModelOptions::Head::kNormalised) {
  const auto linear = [&] { return std::make_shared<LinearHead>(features, classes, options.head_bias, first, input); };
  if (options.head == ModelOptions::Head::kNormalised) {
    first_ = model.register_module(name, std::make_shared<NormalisedHead>(features, classes));
  } else if (options.head == ModelOptions::Head::kScaled) {
    first_ = model.register_module(name, std::make_shared<ScaledHead>(features, classes, options.head_bias, input));
  } else {
    first_ = model.register_module(name, linear());
  }
  if (options.head == ModelOptions::Head::kTwoHead) second_ = model.register_module(name + "_multi", linear());
}

ModelOutput Heads::operator()(const at::Tensor& x) const {
  if (x.dim() == 4) {
    check_shape("features", x.sizes(), {kAnySize, features_, kAnySize, kAnySize});
  } else {
    check_shape("features", x.sizes(), {kAnySize, features_});
    if (sees_pixels_) {
      throw ShapeError("features: the head of this network sees each pixel of its last layer, and their means " +
                       shape_text(x.sizes()) + " cannot give its scores");
    }
  }
  const Autocast exact(x.device().type(), false);
  const at::Tensor values = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
  ModelOutput output;
  output.features = x.dim() == 4 ? global_average(values) : values;
  const at::Tensor& seen = sees_pixels_ ? values : output.features;
  output.scores = first_->forward(seen);
  if (second_) output.scores_multi = second_->forward(seen);
  return output;
}

}  // namespace settrain
