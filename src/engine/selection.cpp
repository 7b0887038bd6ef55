#include "src/engine/selection.h"

#include <cmath>

namespace settrain {

Selection::Selection(const std::vector<std::string>& metrics) {
  for (const std::string& metric : metrics) best_.push_back({metric, 0, 0});
}

std::vector<size_t> Selection::update(int64_t epoch, std::span<const MetricValue> values) {
  std::vector<size_t> better;
  for (size_t i = 0; i < best_.size(); ++i) {
    for (const MetricValue& value : values) {
      if ("val/" + value.name != best_[i].metric) continue;
      const bool improved = best_[i].epoch == 0 ? !std::isnan(value.value) : value.value > best_[i].value;
      if (!improved) continue;
      best_[i].value = value.value;
      best_[i].epoch = epoch;
      better.push_back(i);
    }
  }
  return better;
}

}  // namespace settrain
