// The registered metrics, each in the file of its name, with their options and the names of their values.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "metrics/average_k_threshold.h"
#include "metrics/class_hits.h"
#include "metrics/metric.h"

namespace settrain {

struct TopkAccuracyOptions {
  config::Integers top_k;  // every K >= 1, each once

  static config::Keys keys();
};

/// The value that average-K compares with its threshold.
enum class AverageKScore { kSoftmax, kSigmoid, kRaw };

/// The texts that stand for them.
const config::Named<AverageKScore>& average_k_scores();

struct AverageKOptions {
  config::Reals average_k;  // every K > 0, each once; need not be whole
  AverageKScore average_k_score;
  Ties average_k_ties;
  std::string threshold_from;  // val | same | a folder: the images of MetricContext::threshold_scores

  static config::Keys keys();
};

struct SuperclassAccuracyOptions {
  bool superclass_accuracy;  // measured at all

  static config::Keys keys();
};

struct LabelSetOptions {
  bool label_sets;  // images are judged by all of their labels too

  static config::Keys keys();
};

/// Metrics of a part of a split's images. `is_wanted()`: whether there are any.
struct SubsetOptions {
  config::Texts superclasses{};  // empty: all
  int64_t images_per_class = 0;  // at most; kAll: no limit
  int64_t seed = 0;

  static constexpr int64_t kAll = -1;

  bool is_wanted() const { return !superclasses.empty() || images_per_class != kAll; }

  static config::Keys keys();
};

std::unique_ptr<Metric> make_topk_accuracy(TopkAccuracyOptions options, std::vector<CountBin> bins = {});
std::unique_ptr<Metric> make_average_k(AverageKOptions options, std::vector<CountBin> bins = {});
std::unique_ptr<Metric> make_superclass_accuracy(SuperclassAccuracyOptions options, std::vector<CountBin> bins = {});
std::unique_ptr<Metric> make_subset_accuracy(SubsetOptions options, TopkAccuracyOptions top_k,
                                             AverageKOptions average_k);
std::unique_ptr<Metric> make_label_sets(LabelSetOptions options, TopkAccuracyOptions top_k, AverageKOptions average_k);

MetricEntry topk_accuracy_entry();
MetricEntry average_k_entry();
MetricEntry superclass_accuracy_entry();
MetricEntry subset_accuracy_entry();
MetricEntry label_sets_entry();

/// "top5" for K = 5.
std::string topk_name(int64_t k);
/// "avg5" for K = 5, "avg2.5" for K = 2.5.
std::string average_k_name(double k);
/// "avg5_size", the mean size of the sets. K asks for it, so that neither larger nor smaller is better.
MetricValue average_k_size(double k, double size);
/// "avg5_lambda", the sets' threshold.
MetricValue average_k_lambda(double k, double lambda);

/// The values that decide the sets of a split: a set of K holds the classes returned_classes(values, lambdas[i], ties),
/// for i of K in AverageKOptions::average_k.
struct AverageKValues {
  at::Tensor values;            // [samples, classes] float32 or float64: compared with lambda
  std::vector<double> lambdas;  // one a K
  Ties ties = Ties::kKeepAll;
  bool are_log_odds = false;  // log(p) - log(1 - p) of probabilities in place of p

  /// The thresholds of average_k_thresholds() for other values of this kind.
  std::vector<double> thresholds_for(const at::Tensor& others, std::span<const double> ks) const;

  /// A threshold as users know it: a probability where the scores become probabilities.
  double shown(double lambda) const;
};

/// Compares log-odds if a threshold lies at a probability of 0 or 1, because rounding makes many probabilities equal
/// there. The sets are then those of eq. 5.16-5.17 in exact arithmetic.
AverageKValues average_k_values(const AverageKOptions& options, const SplitScores& split, const MetricContext& context);

}  // namespace settrain
