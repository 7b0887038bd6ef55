#include "src/report/confusions.h"

#include <algorithm>
#include <map>
#include <utility>

namespace settrain {

std::vector<Confusion> most_confused(const std::vector<int64_t>& labels, const std::vector<int64_t>& predicted,
                                     size_t limit) {
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != predicted[i]) ++counts[{labels[i], predicted[i]}];
  }
  std::vector<Confusion> pairs;
  for (const auto& [pair, count] : counts) pairs.push_back({pair.first, pair.second, count});
  // The map's order, by class, stays among equals.
  std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
  pairs.resize(std::min(pairs.size(), limit));
  return pairs;
}

std::vector<int64_t> to_superclasses(std::vector<int64_t> classes, const std::vector<int64_t>& superclass_of) {
  for (int64_t& label : classes) label = superclass_of.at(static_cast<size_t>(label));
  return classes;
}

}  // namespace settrain
