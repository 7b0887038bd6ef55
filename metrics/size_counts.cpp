#include "metrics/size_counts.h"

#include <ATen/ops/bincount.h>

namespace settrain {

std::vector<int64_t> size_counts(const at::Tensor& sizes, int64_t classes) {
  const at::Tensor counts = at::bincount(sizes, {}, classes + 1).cpu();
  return {counts.const_data_ptr<int64_t>(), counts.const_data_ptr<int64_t>() + classes + 1};
}

}  // namespace settrain
