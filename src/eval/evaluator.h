// From the batches of scores of a split to every metric of a run, and to the best values that these can have.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "metrics/metric.h"

namespace settrain {

/// Gathers a split's scores batch by batch. Holds [samples, classes] scores on one device from the start, so that a
/// pass over a split allocates nothing.
class ScoreCollector {
 public:
  /// `dtype` is float32 or float64; batches of another dtype are converted.
  ScoreCollector(int64_t samples, int64_t classes, at::Device device, at::ScalarType dtype = at::kFloat,
                 bool has_label_sets = false);

  /// Appends a batch: `scores` [batch, classes] floating point, `labels` [batch] int64, and where there are label sets
  /// `label_sets` [batch, classes], bool or numbers that are not 0 for labels; on any device. Samples without a label
  /// may carry any number, as long as only their scores are used. Throws ShapeError where a shape differs or where
  /// there are more samples than announced.
  void add(const at::Tensor& scores, const at::Tensor& labels, const at::Tensor& label_sets = {});

  /// Everything that was added. Throws ShapeError unless `left_out` of the announced samples are missing, and what
  /// check_scores() throws.
  SplitScores finish(int64_t left_out = 0) const;

 private:
  SplitScores split_;
  int64_t filled_ = 0;
};

/// Computes every metric from scores that were made once; never sees the model.
class Evaluator {
 public:
  /// Builds every metric of the registry from the section `eval`. Of `context`, threshold_scores and calibration are
  /// left to evaluate().
  Evaluator(const MetricRegistry& registry, const config::Config& config, MetricContext context);
  Evaluator(std::vector<std::unique_ptr<Metric>> metrics, MetricContext context);

  /// The values that evaluate() will return, in its order: Metric::facts() of every metric.
  std::vector<MetricValue> facts() const;

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

/// The best accuracy that any classifier can have, where P(y | x) is known because the data were made: the expected
/// accuracy, over the labels, of the Bayes-optimal sets on the given samples; named as the metrics are, so
/// that a difference of two values of one name is a regret.
///
/// "top5": the mean over the samples of the sum of the K largest probabilities. "avg5": the K * samples largest of all
/// probabilities, summed and divided by the samples; where K * samples is not whole, the next one counts by the
/// fraction (a set that holds it with that probability), and "avg5_size" is K, or the number of classes where that is
/// less.
///
/// `probabilities` [samples, classes] float32 or float64, rows sum to 1. Sums are taken in float64.
std::vector<MetricValue> bayes_accuracy(const at::Tensor& probabilities, const config::Integers& top_k,
                                        const config::Reals& average_k);

}  // namespace settrain
