// Top-K accuracy: is the label among the K largest scores?
#pragma once

#include <string>
#include <vector>

#include "metrics/count_bins.h"
#include "metrics/metric.h"

namespace settrain {

/// "top5" for K = 5.
std::string topk_name(int64_t k);

struct TopkAccuracyOptions {
  config::Integers top_k;  // every K >= 1, each once

  static config::Keys keys();
};

/// For every K: the share of samples whose label is among the K largest scores (Garcin 2023, eq. 2.14), its mean over
/// classes, over the shot groups and over `bins` (class_hits.h). Ties go to the smaller class index; K >= classes holds
/// every label.
class TopkAccuracy : public Metric {
 public:
  explicit TopkAccuracy(TopkAccuracyOptions options, std::vector<CountBin> bins = {})
      : options_(std::move(options)), bins_(std::move(bins)) {}

  std::vector<std::string> names() const override;
  ResultsOfSamples prepare(const SplitScores& split, const MetricContext& context) const override;

 private:
  TopkAccuracyOptions options_;
  std::vector<CountBin> bins_;
};

}  // namespace settrain
