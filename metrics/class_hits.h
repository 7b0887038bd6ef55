// From "was the label in the set?" of every sample to the accuracy over samples, over classes, and over classes with
// few, some or many training images, or with their number in a bin.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "metrics/metric.h"
#include "metrics/shot_group.h"
#include "src/config/key.h"

namespace settrain {

/// The classes with `first` to `last` training images, both included.
struct CountBin {
  std::string name;  // "bin10_49"; "bin50" for those with 50 or more
  int64_t first, last;

  bool holds(int64_t train_count) const { return first <= train_count && train_count <= last; }
};

struct CountBinOptions {
  config::Integers count_bins;  // every bound >= 1, ascending

  static config::Keys keys();

  /// For the bounds 10 and 50 (Garcin 2023, table 3.1, has 10, 50, 500 and 2000): bin0_9, bin10_49 and bin50, which
  /// together hold every class. No bounds, no bins.
  std::vector<CountBin> bins() const;

  /// The bins of a config's section `eval`.
  static std::vector<CountBin> bins_of(const config::Config& config) {
    return config.read<CountBinOptions>("eval").bins();
  }
};

/// [size]: how many of the `values` are 0, 1, ..., size - 1. `values` int64 on any device, each in [0, size).
std::vector<int64_t> counts_of(const at::Tensor& values, int64_t size);

/// The mean of the numbers that counts_of() has counted. NaN without any.
double mean_of_counts(const std::vector<int64_t>& counts);

/// Exact counts, so that no accuracy depends on the order of the samples.
struct ClassHits {
  std::vector<int64_t> hits;   // [classes] samples of the class whose set holds their label
  std::vector<int64_t> total;  // [classes] samples of the class
};

/// `in_set` [samples] bool, `labels` [samples] int64 in [0, classes), on one device.
ClassHits count_hits(const at::Tensor& in_set, const at::Tensor& labels, int64_t classes);

/// A mean and the number of classes it is over.
struct ClassMean {
  double mean = 0;  // NaN where there is no class
  int64_t classes = 0;
};

/// The share of samples whose set holds their label.
double accuracy(const ClassHits& counts);

/// The mean of the accuracies of single classes (Garcin 2023, section 3.3.1). A class without a sample has no accuracy
/// and is left out.
ClassMean macro_accuracy(const ClassHits& counts);

/// The same over the classes of one group. `train_counts` [classes] training images of every class.
ClassMean shot_accuracy(const ClassHits& counts, const std::vector<int64_t>& train_counts, ShotGroup group);

/// The accuracies of sets called `sets` ("top5"): "top5", "macro_top5", "few_top5", "medium_top5", "many_top5", and
/// "bin0_9_top5" and so on for the bins. `train_counts` [classes] training images of every class; `size` is
/// MetricValue::size of all.
std::vector<MetricValue> accuracies(const std::string& sets, const ClassHits& counts,
                                    const std::vector<int64_t>& train_counts, const std::vector<CountBin>& bins,
                                    const std::string& size = "");

/// The same before there are scores, with NaN for every number: Metric::facts().
std::vector<MetricValue> accuracy_facts(const std::string& sets, const std::vector<CountBin>& bins,
                                        const std::string& size = "");

}  // namespace settrain
