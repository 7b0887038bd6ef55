// The last layer of a classifier.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>

namespace settrain {

/// From features [batch, features] to scores [batch, classes]. Registered under a model's name for its last layer
/// ("fc").
class Head : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& features) = 0;
};

/// scores = features weight^T + bias. `weight` [classes, features] and `bias` [classes] start uniform in
/// +-1/sqrt(features), as torch.nn.Linear's.
class LinearHead : public Head {
 public:
  LinearHead(int64_t features, int64_t classes);
  at::Tensor forward(const at::Tensor& features) override;

 private:
  at::Tensor weight_, bias_;
};

/// Cosines: both the features and every class' weights are divided by max(norm, 1e-12). No bias. `weight` is [features,
/// classes], transposed against a linear layer's, as in the published checkpoints; it starts uniform in +-1 with
/// columns scaled to norm 1.
class NormalisedHead : public Head {
 public:
  NormalisedHead(int64_t features, int64_t classes);
  at::Tensor forward(const at::Tensor& features) override;

 private:
  at::Tensor weight_;
};

/// `kind`: "linear" or "normalised".
std::shared_ptr<Head> make_head(const std::string& kind, int64_t features, int64_t classes);

}  // namespace settrain
