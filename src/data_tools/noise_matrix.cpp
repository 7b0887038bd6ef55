#include "src/data_tools/noise_matrix.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

namespace settrain {

std::vector<NoiseCell> noise_matrix(const std::vector<int64_t>& clean, const std::vector<int64_t>& trained) {
  if (clean.size() != trained.size()) throw std::invalid_argument("noise_matrix: as many clean as trained labels");
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;
  for (size_t i = 0; i < clean.size(); ++i) ++counts[{clean[i], trained[i]}];
  std::vector<NoiseCell> cells;
  for (const auto& [classes, count] : counts) cells.push_back({classes.first, classes.second, count});
  return cells;
}

std::vector<NoiseCell> largest_confusions(std::vector<NoiseCell> cells, size_t most) {
  std::erase_if(cells, [](const NoiseCell& cell) { return cell.truth == cell.given; });
  std::stable_sort(cells.begin(), cells.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
  if (cells.size() > most) cells.resize(most);
  return cells;
}

}  // namespace settrain
