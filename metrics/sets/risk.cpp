// risk_threshold(): conformal risk control for images with several labels.
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "metrics/sets/conformal_scores.h"
#include "metrics/sets/conformal_thresholds.h"
#include "metrics/sets/score_rows.h"

namespace settrain {
namespace {

/// A label of an image: its score, and its share of the image's labels.
struct ScoredLabel {
  DoubleDouble score;
  double share;
};

/// [images, classes] bool
at::Tensor as_sets(const at::Tensor& labels, int64_t classes) {
  if (labels.dim() == 2) return labels.contiguous();
  return at::zeros({labels.size(0), classes}, at::kBool).scatter_(1, labels.unsqueeze(1), true);
}

/// All labels of all images, in the order of the images and of the classes.
template <class T>
std::vector<ScoredLabel> scored_labels(const CalibratedRule& rule, const at::Tensor& scores, const at::Tensor& sets) {
  const at::Tensor counts = sets.sum(1);
  const auto* count = counts.const_data_ptr<int64_t>();
  std::vector<int64_t> first(static_cast<size_t>(scores.size(0)) + 1);
  std::partial_sum(count, count + scores.size(0), first.begin() + 1);
  std::vector<ScoredLabel> found(static_cast<size_t>(first.back()));
  for_each_score_row<T>(scores, rule.probability, [&] {
    return [&](const ScoreRow<T>& row) {
      const bool* set = sets.const_data_ptr<bool>() + row.image * row.classes;
      ScoredLabel* next = found.data() + first[static_cast<size_t>(row.image)];
      for (int64_t c = 0; c < row.classes; ++c) {
        if (!set[c]) continue;
        *next++ = {class_score(rule, static_cast<size_t>(c), row.p[c], row.rest(c)),
                   1 / static_cast<double>(count[row.image])};
      }
    };
  });
  return found;
}

}  // namespace

DoubleDouble risk_threshold(const CalibratedRule& rule, const at::Tensor& scores, const at::Tensor& labels) {
  const at::Tensor sets = as_sets(labels, rule.classes);
  std::vector<ScoredLabel> found = scores.scalar_type() == at::kDouble ? scored_labels<double>(rule, scores, sets)
                                                                       : scored_labels<float>(rule, scores, sets);
  std::ranges::sort(found, {}, &ScoredLabel::score);
  // n R(q) + 1 <= alpha (n + 1), where n R(q) is n minus the shares of the labels with scores up to q. Rounding errors
  // do not count, as in conformal_rank().
  const double next = static_cast<double>(scores.size(0)) + 1;
  const DoubleDouble wanted = next * (1 - rule.rule.level) - 1e-14 * next;
  DoubleDouble held;
  for (const auto& [score, share] : found) {
    held = DoubleDouble::sum(held.high, held.low + share);
    if (held >= wanted) return score;
  }
  return kAlwaysIn;
}

}  // namespace settrain
