#include "datasets/dataset.h"

namespace settrain {

std::vector<int64_t> count_classes(const Split& split, int64_t num_classes) {
  std::vector<int64_t> counts(static_cast<size_t>(num_classes));
  for (const int64_t label : split.labels) ++counts.at(static_cast<size_t>(label));
  return counts;
}

}  // namespace settrain
