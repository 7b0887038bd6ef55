// Average-K accuracy: sets may differ in size as long as they hold K classes on average.
#pragma once

#include <string>
#include <vector>

#include "metrics/count_bins.h"
#include "metrics/metric.h"
#include "metrics/threshold.h"

namespace settrain {

/// "avg5" for K = 5, "avg2.5" for K = 2.5.
std::string average_k_name(double k);

/// Whether set sizes of that name are of all samples ("avg5"), and not of one shot group ("few_avg5").
bool is_of_all_samples(const std::string& set_sizes);

struct AverageKOptions {
  config::Reals average_k;      // every K > 0, each once; need not be whole
  std::string average_k_score;  // softmax | sigmoid | raw
  std::string average_k_ties;   // keep_all | strict
  std::string threshold_from;   // val | same | a folder: for who fills MetricContext::threshold_scores

  static config::Keys keys();
};

/// What decides the sets of a split: those of K hold the classes returned_classes(values, lambdas[i], ties), for i of K
/// in AverageKOptions::average_k.
struct AverageKValues {
  at::Tensor values;            // [samples, classes] float32 or float64: what is compared with lambda
  std::vector<double> lambdas;  // one a K
  Ties ties = Ties::kKeepAll;
};

AverageKValues average_k_values(const AverageKOptions& options, const SplitScores& split, const MetricContext& context);

/// A class is returned where its value reaches a threshold lambda, one for all samples, that makes sets of K classes on
/// average on the scores that set it (Garcin 2023, Algorithm 1, eq. 5.16-5.17). For every K: the share of samples whose
/// label is returned ("avg5"), the realised mean size of the sets ("avg5_size") and lambda ("avg5_lambda"), and the
/// accuracy's mean over classes, over the shot groups and over `bins` (class_hits.h). The set sizes' histogram comes
/// along, and after it those of the shot groups ("few_avg5", "medium_avg5", "many_avg5": of the samples whose label is
/// of such a class), as in Garcin 2023, Figure 5.4b; a group without a sample has none.
class AverageK : public Metric {
 public:
  explicit AverageK(AverageKOptions options, std::vector<CountBin> bins = {})
      : options_(std::move(options)), bins_(std::move(bins)) {}

  std::vector<std::string> names() const override;
  ResultsOfSamples prepare(const SplitScores& split, const MetricContext& context) const override;

 private:
  AverageKOptions options_;
  std::vector<CountBin> bins_;
};

}  // namespace settrain
