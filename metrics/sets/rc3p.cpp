#include "metrics/sets/rc3p.h"

#include <algorithm>
#include <utility>

#include "metrics/sets/quantile.h"

namespace settrain {

RankCalibration calibrate_ranks(const std::vector<DoubleDouble>& scores, const std::vector<int64_t>& ranks,
                                const std::vector<int64_t>& labels, int64_t classes, double alpha) {
  std::vector<std::vector<DoubleDouble>> class_scores(static_cast<size_t>(classes));
  std::vector<std::vector<int64_t>> class_ranks(class_scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    class_scores[static_cast<size_t>(labels[i])].push_back(scores[i]);
    class_ranks[static_cast<size_t>(labels[i])].push_back(ranks[i]);
  }
  RankCalibration calibration;
  for (size_t c = 0; c < class_scores.size(); ++c) {
    std::vector<int64_t>& sorted = class_ranks[c];
    std::sort(sorted.begin(), sorted.end());
    int64_t most = sorted.empty() ? classes : 1;
    double beyond =
        0;  // e_y(most): a quotient of whole numbers is as near to alpha as the text that alpha was read from
    const auto images = static_cast<double>(sorted.size());
    const auto share_above = [&](int64_t k) {
      return static_cast<double>(sorted.end() - std::upper_bound(sorted.begin(), sorted.end(), k)) / images;
    };
    if (!sorted.empty()) {
      // e_y only changes at ranks that occur.
      for (size_t i = 0; (beyond = share_above(most)) >= alpha; ++i) most = sorted[i];
    }
    calibration.most_ranks.push_back(most);
    calibration.thresholds.push_back(conformal_quantile(std::move(class_scores[c]), alpha - beyond));
  }
  return calibration;
}

}  // namespace settrain
