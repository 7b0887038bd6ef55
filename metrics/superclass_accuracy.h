// Superclass accuracy: is the first answer of the right kind?
#pragma once

#include <string>
#include <vector>

#include "metrics/count_bins.h"
#include "metrics/metric.h"

namespace settrain {

struct SuperclassAccuracyOptions {
  bool superclass_accuracy;  // measured at all

  static config::Keys keys();
};

/// "top1_superclass": the share of samples whose largest score is of a class in the superclass of their label, such as
/// a species of the right genus; its mean over classes, over the shot groups and over `bins` (class_hits.h), which are
/// those of the label's class. Of equal scores the smallest class index counts. Needs MetricContext::superclass_of.
class SuperclassAccuracy : public Metric {
 public:
  explicit SuperclassAccuracy(SuperclassAccuracyOptions options, std::vector<CountBin> bins = {})
      : options_(options), bins_(std::move(bins)) {}

  std::vector<std::string> names() const override;
  ResultsOfSamples prepare(const SplitScores& split, const MetricContext& context) const override;

 private:
  SuperclassAccuracyOptions options_;
  std::vector<CountBin> bins_;
};

}  // namespace settrain
