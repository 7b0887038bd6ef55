#include "metrics/sets/label_scores.h"

#include "metrics/sets/conformal_scores.h"
#include "metrics/sets/score_rows.h"
#include "metrics/sets/set_noise.h"

namespace settrain {
namespace {

template <class T>
void find_class_scores(const CalibratedRule& rule, const at::Tensor& scores, const int64_t* labels,
                       DoubleDouble* found) {
  for_each_score_row<T>(scores, rule.probability, [&] {
    return [&, labels, found](const ScoreRow<T>& row) {
      const int64_t label = labels[row.image];
      found[row.image] = class_score(rule, static_cast<size_t>(label), row.p[label], row.rest(label));
    };
  });
}

template <class T>
void find_ranked_scores(const CalibratedRule& rule, const at::Tensor& scores, const int64_t* labels,
                        DoubleDouble* found) {
  for_each_score_row<T>(scores, rule.probability, [&] {
    return [&, labels, found, ranked = RankedRow<T>(rule.classes)](const ScoreRow<T>& row) mutable {
      const double u = rule.rule.randomised ? set_noise(rule.seed, SetNoise::kCalibrationImage, row.image)
                                            : fixed_u(rule.rule.score);
      RankedScore score(rule.rule, u);
      ranked.start(row);
      for (int64_t rank = 0;; ++rank) {
        found[row.image] = score.next(ranked.p(rank), ranked.behind(rank));
        if (ranked.at(rank) == labels[row.image]) break;
      }
    };
  });
}

}  // namespace

std::vector<DoubleDouble> label_scores(const CalibratedRule& rule, const at::Tensor& scores, const at::Tensor& labels) {
  std::vector<DoubleDouble> found(static_cast<size_t>(labels.size(0)));
  const bool ranked = rule.rule.kind == SetRule::Kind::kConformal && is_ranked(rule.rule.score);
  const auto find = scores.scalar_type() == at::kDouble
                        ? (ranked ? find_ranked_scores<double> : find_class_scores<double>)
                        : (ranked ? find_ranked_scores<float> : find_class_scores<float>);
  find(rule, scores, labels.const_data_ptr<int64_t>(), found.data());
  return found;
}

}  // namespace settrain
