#include "src/core/suggest.h"

#include <algorithm>
#include <vector>

namespace settrain {
namespace {

constexpr size_t kLongestMistyped = 80;  // bytes; nobody mistypes more than that, and edit distances cost their product

// Damerau-Levenshtein distance, restricted: no substring is edited twice.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, substitute});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  if (name.size() > kLongestMistyped) return "";
  std::string nearest;
  size_t smallest = 0;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    const size_t allowed = std::max<size_t>(2, std::max(name.size(), candidate.size()) / 3);
    if (distance <= allowed && (nearest.empty() || distance < smallest)) {
      nearest = candidate;
      smallest = distance;
    }
  }
  return nearest;
}

}  // namespace settrain
