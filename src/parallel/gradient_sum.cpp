#include "src/parallel/gradient_sum.h"

#include <utility>

#include "src/parallel/bucketed_sum.h"
#include "src/parallel/ordered_sum.h"

namespace settrain {

std::unique_ptr<GradientSum> make_gradient_sum(ProcessGroup& group, std::vector<at::Tensor> parameters,
                                               std::optional<int64_t> bucket_bytes) {
  if (!bucket_bytes) return std::make_unique<OrderedSum>(group, std::move(parameters));
  return std::make_unique<BucketedSum>(group, std::move(parameters), *bucket_bytes);
}

}  // namespace settrain
