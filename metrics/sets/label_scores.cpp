#include "metrics/sets/label_scores.h"

#include "metrics/sets/class_score.h"
#include "metrics/sets/descending_row.h"
#include "metrics/sets/ranked_score.h"
#include "metrics/sets/score_rows.h"
#include "metrics/sets/set_noise.h"

namespace settrain {
namespace {

template <class T>
void probabilities_of_labels(const at::Tensor& scores, const int64_t* labels, ProbabilityKind kind, double* found) {
  for_each_score_row<T>(scores, kind, [&] {
    return [=](int64_t i, const T*, const T* p) { found[i] = static_cast<double>(p[labels[i]]); };
  });
}

template <class T>
void ranked_scores_of_labels(const CalibratedRule& rule, const at::Tensor& scores, const int64_t* labels,
                             double* found) {
  for_each_score_row<T>(scores, rule.probability, [&] {
    return [=, &rule, order = DescendingRow<T>(scores.size(1))](int64_t i, const T* row, const T* p) mutable {
      const double u =
          rule.rule.randomised ? set_noise(rule.seed, SetNoise::kCalibrationImage, i) : fixed_u(rule.rule.score);
      RankedScore score(rule.rule, u);
      order.start_until(row, labels[i]);
      for (int64_t rank = 0; rank < order.size(); ++rank) found[i] = score.next(p[order.at(rank)]);
    };
  });
}

}  // namespace

std::vector<double> label_probabilities(const at::Tensor& scores, const at::Tensor& labels, ProbabilityKind kind) {
  std::vector<double> found(static_cast<size_t>(labels.size(0)));
  const auto find =
      scores.scalar_type() == at::kDouble ? probabilities_of_labels<double> : probabilities_of_labels<float>;
  find(scores, labels.const_data_ptr<int64_t>(), kind, found.data());
  return found;
}

std::vector<double> label_scores(const CalibratedRule& rule, const at::Tensor& scores, const at::Tensor& labels) {
  const auto* classes = labels.const_data_ptr<int64_t>();
  if (is_ranked(rule.rule.score)) {
    std::vector<double> found(static_cast<size_t>(labels.size(0)));
    const auto find =
        scores.scalar_type() == at::kDouble ? ranked_scores_of_labels<double> : ranked_scores_of_labels<float>;
    find(rule, scores, classes, found.data());
    return found;
  }
  std::vector<double> found = label_probabilities(scores, labels, rule.probability);
  for (size_t i = 0; i < found.size(); ++i) found[i] = class_score(rule, static_cast<size_t>(classes[i]), found[i]);
  return found;
}

}  // namespace settrain
