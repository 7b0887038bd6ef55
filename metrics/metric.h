// The interface of metrics to the rest of the program.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "metrics/split_scores.h"
#include "src/config/config.h"
#include "src/core/registry.h"
#include "src/core/taxonomy.h"

namespace settrain {

/// The facts that metrics need besides the scores.
struct MetricContext {
  std::vector<int64_t> train_counts;             // [classes] training images of every class, for its groups
  double score_scale = 1.0;                      // Loss::score_scale(): multiplies scores before a softmax or sigmoid
  const at::Tensor* threshold_scores = nullptr;  // [samples, classes] set average-K's thresholds; null: the split's own
  std::vector<int64_t> superclass_of = {};       // [classes]; empty where the data set has no superclasses
  const SplitScores* calibration = nullptr;      // calibrate set rules; null: half of the split's own images do
  std::vector<std::string> class_names = {};     // [classes], for files that name classes; or empty
  bool sigmoid = false;                          // a class' probability is the sigmoid of its score; else softmax
  uint64_t seed = 0;                             // of what set rules draw
  std::vector<std::string> superclass_names = {};  // of the numbers in superclass_of
  Taxonomy taxonomy = {};                          // of the classes; empty where there are no superclasses
};

enum class MetricUnit { kFraction, kClasses, kThreshold, kNodes, kSteps };
enum class MeanOver { kSamples, kClasses };
enum class Better { kHigher, kLower, kNeither };

/// One number, and the facts about it. The number is NaN where it is undefined (no class in a shot group or bin).
struct MetricValue {
  std::string name;  // "top5", "macro_top5", "few_top1", "avg5", "avg5_size", "macro_avg5", "coverage@top:5"
  double value;      // a fraction in [0, 1] unless `unit` says otherwise
  MetricUnit unit = MetricUnit::kFraction;
  MeanOver over = MeanOver::kSamples;
  Better better = Better::kHigher;
  std::string size = {};  // the name of the mean size of the sets that the metric judges; empty where sizes are fixed
};

/// Whether the value is better than `other`, an earlier one of the same metric. NaN is never better, and neither is any
/// value of a metric that has no better end.
inline bool is_better(const MetricValue& value, double other) {
  if (value.better == Better::kNeither) return false;
  return value.better == Better::kLower ? value.value < other : value.value > other;
}

/// How many samples got sets of how many classes.
struct SetSizeHistogram {
  std::string metric;           // whose sets: "avg5", "coverage@top:5"; "few_avg5": of the samples of one shot group
  std::vector<int64_t> counts;  // [classes + 1] samples whose set holds 0, 1, ..., classes classes
};

/// The results of the metrics on one split.
struct EvaluationResult {
  std::vector<MetricValue> values;
  std::vector<SetSizeHistogram> set_sizes;  // of every metric that answers with sets of varying size
};

/// The results of a split's samples with these indices: [any number] int64 on the scores' device, which may repeat; of
/// the split itself where `samples` is undefined.
using ResultsOfSamples = std::function<EvaluationResult(const at::Tensor& samples)>;

/// The rows of `of_split` [samples, ...] for these samples.
inline at::Tensor of_samples(const at::Tensor& of_split, const at::Tensor& samples) {
  return samples.defined() ? of_split.index_select(0, samples) : of_split;
}

/// Adds `more` at the end of `all`.
template <class T>
void append(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// One kind of metric, configured: all of its K.
class Metric {
 public:
  virtual ~Metric() = default;

  /// The values that compute() will return, in its order, known before there are scores: names and facts are valid, the
  /// numbers are NaN or 0. Empty where the configuration asks for none: prepare() is then not called.
  virtual std::vector<MetricValue> facts() const = 0;

  /// Takes a split as check_split() lets it through, and does once what does not depend on which of its samples are
  /// asked for: ranks, thresholds, calibration. Runs where the scores are. The answer must not outlive this metric.
  ///
  /// The bootstrap asks a thousand times. Measured on two cores with 50,000 samples of 1000 classes, a resample takes
  /// 17 ms for top-K, 26 ms for average-K and 54 ms for a set rule; computing the same from the resampled scores takes
  /// 210, 550 and 3400 ms. Only where average-K sets its thresholds on the resample itself is little gained: 370 of 550
  /// ms.
  virtual ResultsOfSamples prepare(const SplitScores& split, const MetricContext& context) const = 0;

  /// The results of the split itself.
  EvaluationResult compute(const SplitScores& split, const MetricContext& context) const {
    return facts().empty() ? EvaluationResult() : prepare(split, context)({});
  }
};

/// `keys` are the keys of the section `eval` that this metric reads (each key is declared by one metric alone, also
/// where others read it).
struct MetricEntry {
  std::string name;
  std::string help;
  config::Keys keys;
  std::function<std::unique_ptr<Metric>(const config::Config&)> make;
};

using MetricRegistry = Registry<MetricEntry>;

/// Adds every metric of this folder.
void register_builtin_metrics(MetricRegistry& registry);

}  // namespace settrain
