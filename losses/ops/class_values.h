// A number for every class.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace settrain {

class ClassValues {
 public:
  explicit ClassValues(const std::vector<double>& values);  // [classes]

  /// [batch] those of the labels ([batch] int64), in the dtype and on the device of `like`.
  at::Tensor of(const at::Tensor& labels, const at::Tensor& like) const;

  /// [classes] all of them, in the dtype and on the device of `like`.
  const at::Tensor& of_all(const at::Tensor& like) const;

 private:
  at::Tensor values_;          // [classes] float64, on the CPU
  mutable at::Tensor in_use_;  // as was last asked for
};

}  // namespace settrain
