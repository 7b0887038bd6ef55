#include "models/heads.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>

#include <cmath>
#include <stdexcept>

namespace settrain {
namespace {

// Rows or columns of unit length along `dim`; the floor keeps an all-zero one at zero.
at::Tensor unit_length(const at::Tensor& t, int64_t dim) {
  return t / t.norm(2, dim, /*keepdim=*/true).clamp_min(1e-12);
}

}  // namespace

LinearHead::LinearHead(int64_t features, int64_t classes) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(features));
  weight_ = register_parameter("weight", at::empty({classes, features}).uniform_(-bound, bound));
  bias_ = register_parameter("bias", at::empty({classes}).uniform_(-bound, bound));
}

at::Tensor LinearHead::forward(const at::Tensor& features) {
  return at::linear(features, weight_, bias_);
}

NormalisedHead::NormalisedHead(int64_t features, int64_t classes) {
  weight_ = register_parameter("weight", unit_length(at::empty({features, classes}).uniform_(-1, 1), 0));
}

at::Tensor NormalisedHead::forward(const at::Tensor& features) {
  return at::matmul(unit_length(features, 1), unit_length(weight_, 0));
}

std::shared_ptr<Head> make_head(const std::string& kind, int64_t features, int64_t classes) {
  if (kind == "linear") return std::make_shared<LinearHead>(features, classes);
  if (kind == "normalised") return std::make_shared<NormalisedHead>(features, classes);
  throw std::logic_error("no head '" + kind + "'");
}

}  // namespace settrain
