// tuned_penalty(): the numbers of raps, chosen on images that calibrate nothing else.
#include <ATen/TensorOperators.h>
#include <ATen/ops/sort.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "metrics/label_rank.h"
#include "metrics/sets/calibrate.h"
#include "metrics/sets/conformal_thresholds.h"
#include "metrics/sets/set_quality.h"

namespace settrain {

RapsPenalty tuned_penalty(const SetRule& rule, const ClassFacts& facts, const SplitScores& images, uint64_t seed) {
  static const std::vector<double> kForSize{0.001, 0.01, 0.1, 0.2, 0.5};
  static const std::vector<double> kForStrata{0.00001, 0.0001, 0.0008, 0.001, 0.0015, 0.002};
  const bool for_size = rule.tuning == RapsTuning::kSize;
  const at::Tensor ranks = std::get<0>(label_ranks(images.scores, images.labels).add(1).sort());
  const int64_t place = std::min(conformal_rank(ranks.size(0), rule.level), ranks.size(0)) - 1;

  SetRule tried = rule;
  tried.tuning = RapsTuning::kNone;
  tried.threshold = ConformalThreshold::kMarginal;
  tried.k = ranks[place].item<int64_t>();
  double best = std::numeric_limits<double>::infinity(), best_lambda = 0;
  for (const double lambda : for_size ? kForSize : kForStrata) {
    tried.lambda = lambda;
    const CalibratedRule calibrated = calibrate(tried, facts, images.scores, images.labels, seed);
    const SetQuality quality =
        set_quality(sets_of(calibrated, images.scores), images.labels, rule.wanted_coverage(), {});
    const double cost = for_size ? quality.mean_size : quality.size_stratified_violation;
    if (!(cost < best)) continue;
    best = cost;
    best_lambda = lambda;
  }
  return {best_lambda, tried.k};
}

}  // namespace settrain
