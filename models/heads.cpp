#include "models/heads.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>

#include <cmath>

#include "models/autocast.h"
#include "models/cost.h"

namespace settrain {
namespace {

// Rows or columns of unit length along `dim`; the floor keeps an all-zero one at zero.
at::Tensor unit_length(const at::Tensor& t, int64_t dim) {
  return t / t.norm(2, dim, /*keepdim=*/true).clamp_min(1e-12);
}

/// factor_j (features weight^T + bias)_j, of which only `factor` [classes] is trained: learnable weight scaling (Kang
/// et al., ICLR 2020, section 4). `factor` starts at 1.
class ScaledHead : public LinearHead {
 public:
  ScaledHead(int64_t features, int64_t classes, bool with_bias) : LinearHead(features, classes, with_bias) {
    for (at::Tensor& fixed : parameters()) fixed.set_requires_grad(false);
    factor_ = register_parameter("factor", at::ones({classes}, CostCounter::device()));
  }

  at::Tensor forward(const at::Tensor& features) override { return factor_ * LinearHead::forward(features); }

 private:
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
    return at::matmul(unit_length(features, 1), unit_length(weight_, 0));
  }

 private:
  at::Tensor weight_;
};

}  // namespace

LinearHead::LinearHead(int64_t features, int64_t classes, bool with_bias, FirstHead first) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(features));
  double weight_bound = bound;
  if (first == FirstHead::kZero) weight_bound = 0;
  if (first == FirstHead::kByClasses) weight_bound = 1.0 / std::sqrt(static_cast<double>(classes));
  const at::Tensor weight = at::empty({classes, features}, CostCounter::device());
  weight_ = register_parameter(
      "weight", first == FirstHead::kNormal ? weight.normal_(0, 0.02) : weight.uniform_(-weight_bound, weight_bound));
  if (!with_bias) return;
  const double bias_bound = first == FirstHead::kUniform ? bound : 0;
  bias_ = register_parameter("bias", at::empty({classes}, CostCounter::device()).uniform_(-bias_bound, bias_bound));
}

at::Tensor LinearHead::forward(const at::Tensor& features) {
  return at::linear(features, weight_, bias_);
}

Heads::Heads(torch::nn::Module& model, const std::string& name, const ModelOptions& options, int64_t features,
             int64_t classes, FirstHead first) {
  const auto linear = [&] { return std::make_shared<LinearHead>(features, classes, options.head_bias, first); };
  if (options.head == ModelOptions::Head::kNormalised) {
    first_ = model.register_module(name, std::make_shared<NormalisedHead>(features, classes));
  } else if (options.head == ModelOptions::Head::kScaled) {
    first_ = model.register_module(name, std::make_shared<ScaledHead>(features, classes, options.head_bias));
  } else {
    first_ = model.register_module(name, linear());
  }
  if (options.head == ModelOptions::Head::kTwoHead) second_ = model.register_module(name + "_multi", linear());
}

ModelOutput Heads::operator()(const at::Tensor& features) const {
  const Autocast exact(features.device().type(), false);
  ModelOutput output;
  output.features = features;
  output.scores = first_->forward(features);
  if (second_) output.scores_multi = second_->forward(features);
  if (features.is_meta()) {
    for (const at::Tensor& scores : {output.scores, output.scores_multi}) {
      if (scores.defined()) CostCounter::add(features.size(1) * scores.size(1));
    }
  }
  return output;
}

}  // namespace settrain
