#include "losses/ops/class_values.h"

#include <ATen/ops/tensor.h>

namespace settrain {

ClassValues::ClassValues(const std::vector<double>& values)
    : values_(at::tensor(values, at::kDouble)), in_use_(values_) {}

at::Tensor ClassValues::of(const at::Tensor& labels, const at::Tensor& like) const {
  return of_all(like).index_select(0, labels);
}

const at::Tensor& ClassValues::of_all(const at::Tensor& like) const {
  if (in_use_.dtype() != like.dtype() || in_use_.device() != like.device()) in_use_ = values_.to(like.options());
  return in_use_;
}

}  // namespace settrain
