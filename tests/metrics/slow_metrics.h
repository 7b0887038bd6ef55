// The metrics once more, written from their definitions with loops and sorts over plain vectors.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

namespace settrain::test {

using Matrix = std::vector<std::vector<double>>;

inline Matrix to_matrix(const at::Tensor& scores) {
  const at::Tensor wide = scores.to(at::kDouble).contiguous();
  const double* value = wide.const_data_ptr<double>();
  Matrix rows(wide.size(0));
  for (auto& row : rows) {
    row.assign(value, value + wide.size(1));
    value += wide.size(1);
  }
  return rows;
}

/// The classes of the K largest scores: a stable sort keeps the smaller index first.
inline std::vector<int64_t> slow_top_k(const std::vector<double>& scores, int64_t k) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  order.resize(std::min<size_t>(order.size(), k));
  return order;
}

struct SlowSets {
  double lambda = 0;
  std::vector<std::vector<int64_t>> sets;  // of every sample of the evaluated matrix
};

/// Algorithm 1 with a full sort, for 0 < m < all values.
inline SlowSets slow_average_k(const Matrix& values, const Matrix& threshold_values, double k, bool strict) {
  std::vector<double> all;
  for (const auto& row : threshold_values) all.insert(all.end(), row.begin(), row.end());
  std::sort(all.begin(), all.end(), std::greater<>());
  const auto m = static_cast<size_t>(std::floor(k * static_cast<double>(threshold_values.size()) + 1e-9));
  SlowSets result;
  result.lambda = 0.5 * (all[m - 1] + all[m]);
  for (const auto& row : values) {
    result.sets.emplace_back();
    for (size_t j = 0; j < row.size(); ++j) {
      if (strict ? row[j] > result.lambda : row[j] >= result.lambda)
        result.sets.back().push_back(static_cast<int64_t>(j));
    }
  }
  return result;
}

inline double slow_accuracy(const std::vector<std::vector<int64_t>>& sets, const std::vector<int64_t>& labels) {
  double inside = 0;
  for (size_t i = 0; i < sets.size(); ++i) inside += std::count(sets[i].begin(), sets[i].end(), labels[i]);
  return inside / static_cast<double>(sets.size());
}

/// The mean of the accuracies of the classes that `is_in` picks and that have samples; NaN where there is none.
inline double slow_macro(const std::vector<std::vector<int64_t>>& sets, const std::vector<int64_t>& labels,
                         int64_t classes, const std::function<bool(int64_t)>& is_in) {
  std::vector<double> accuracies;
  for (int64_t c = 0; c < classes; ++c) {
    std::vector<std::vector<int64_t>> sets_of_class;
    for (size_t i = 0; i < sets.size(); ++i) {
      if (labels[i] == c) sets_of_class.push_back(sets[i]);
    }
    if (is_in(c) && !sets_of_class.empty()) {
      accuracies.push_back(slow_accuracy(sets_of_class, std::vector<int64_t>(sets_of_class.size(), c)));
    }
  }
  if (accuracies.empty()) return std::nan("");
  return std::accumulate(accuracies.begin(), accuracies.end(), 0.0) / static_cast<double>(accuracies.size());
}

inline std::vector<int64_t> to_vector(const at::Tensor& labels) {
  return {labels.const_data_ptr<int64_t>(), labels.const_data_ptr<int64_t>() + labels.numel()};
}

}  // namespace settrain::test
