#include "src/data_tools/summary.h"

#include <algorithm>
#include <numeric>

namespace settrain {

Summary summarise(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {values.front(), (values[(n - 1) / 2] + values[n / 2]) / 2, sum / static_cast<double>(n), values.back()};
}

}  // namespace settrain
