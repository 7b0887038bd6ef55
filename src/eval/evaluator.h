// From the scores of a split to every metric of a run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "metrics/metric.h"

namespace settrain {

/// Computes every metric from scores that were made once; never sees the model.
class Evaluator {
 public:
  /// Builds every metric of the registry from the section `eval`. Of `context`, threshold_scores and calibration are
  /// left to evaluate().
  Evaluator(const MetricRegistry& registry, const config::Config& config, MetricContext context);
  Evaluator(std::vector<std::unique_ptr<Metric>> metrics, MetricContext context);

  /// The names of all the values that evaluate() returns, in its order: what may stand in `select`.
  std::vector<std::string> names() const;

  /// `threshold_scores` [any samples, classes] set average-K's thresholds; null: the split's own do. `calibration`
  /// calibrates set rules, which then judge all of the split; null: one half of the split does, and they judge the
  /// other. Throws what check_split() throws, and ShapeError where the number of classes differs from the training
  /// counts', the threshold scores' or the calibration's.
  EvaluationResult evaluate(const SplitScores& split, const at::Tensor* threshold_scores = nullptr,
                            const SplitScores* calibration = nullptr) const;

  /// The same for samples drawn from the split, without judging every score anew: what evaluate() would say of their
  /// scores and labels. Thresholds of the split's own come from the samples that are drawn; set rules stay as they were
  /// calibrated. Must not outlive this.
  ResultsOfSamples prepare(const SplitScores& split, const at::Tensor* threshold_scores = nullptr,
                           const SplitScores* calibration = nullptr) const;

 private:
  std::vector<std::unique_ptr<Metric>> metrics_;
  MetricContext context_;
};

}  // namespace settrain
