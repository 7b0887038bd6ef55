// The paired bootstrap: how much of a difference between two runs is the luck of the images that they were tested on.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/core/progress_bar.h"
#include "src/eval/evaluator.h"
#include "src/studies/compare/comparison.h"
#include "src/train/experiment_schema.h"

namespace settrain {

/// One run's answers to the images of a split, and how they are judged.
struct ScoredRun {
  std::shared_ptr<const Evaluator> evaluator;
  SplitScores split{};
  std::optional<at::Tensor> threshold_scores{};  // for Evaluator::evaluate(); never resampled
  std::optional<SplitScores> calibration{};      // for Evaluator::evaluate(); never resampled
};

struct BootstrapOptions {
  int64_t resamples = 1000;
  uint64_t seed = 0;
};

/// `images` indices in [0, images), drawn with replacement: [images] int64 on the CPU. A function of the arguments
/// alone.
at::Tensor resample_indices(uint64_t seed, int64_t resample, int64_t images);

/// The value below which `share` in [0, 1] of the values lie, between two of them on a straight line. NaN where a value
/// is. `values` are not empty.
double percentile(std::vector<double> values, double share);

/// For each metric ("top5", "avg5_size") the difference second - first on the split, and where 95 % of the differences
/// lie when images are drawn with replacement, the same for both runs. Seeds do not vary here: the interval is of the
/// difference of two trained models, on images like these.
///
/// Throws std::invalid_argument where a metric is not evaluated, ShapeError where the runs have different labels, and
/// Interrupted between two resamples after a signal.
std::vector<BootstrapInterval> paired_bootstrap(const ScoredRun& first, const ScoredRun& second,
                                                const std::vector<std::string>& metrics,
                                                const BootstrapOptions& options, const std::string& stage,
                                                ProgressBar& bar);

enum class BootstrapPairs {
  kOneSharedSeed,  // settings that share a single seed with the first one: over seeds there is no interval
  kAll             // every seed that a setting shares with the first one
};

/// Evaluates the checkpoints of the compared runs again, image by image, and adds a paired bootstrap to the differences
/// of `comparisons`, which were made of `settings`. Each checkpoint that a value is of is evaluated once for every pair
/// of its run, and no more than two runs' scores are kept at a time. Throws RunError, naming both folders, where two
/// runs were tested on other images or labels, and what evaluating a run throws.
void add_bootstraps(const Registries& registries, at::Device device, const std::vector<Setting>& settings,
                    BootstrapPairs pairs, const BootstrapOptions& options, ProgressBar& bar,
                    std::vector<MetricComparison>& comparisons);

}  // namespace settrain
