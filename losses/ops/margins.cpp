#include "losses/ops/margins.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "src/core/error.h"

namespace settrain {

std::vector<double> class_margins(std::span<const int64_t> class_counts, double max_margin) {
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (size_t j = 0; j < class_counts.size(); ++j) {
    if (class_counts[j] < 0) {
      throw DataError("class_counts[" + std::to_string(j) + "]: expected 0 or more images, got " +
                      std::to_string(class_counts[j]));
    }
    if (class_counts[j] > 0) smallest = std::min(smallest, class_counts[j]);
  }
  std::vector<double> margins;
  for (const int64_t count : class_counts) {
    const double ratio = count == 0 ? 1.0 : static_cast<double>(smallest) / static_cast<double>(count);
    margins.push_back(max_margin * std::sqrt(std::sqrt(ratio)));
  }
  return margins;
}

}  // namespace settrain
