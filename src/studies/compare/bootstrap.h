// How much of a difference between two runs is the luck of the images that they were tested on.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/core/progress_bar.h"
#include "src/eval/evaluator.h"
#include "src/studies/compare/comparison.h"

namespace settrain {

/// One run's answers to the images of a split, and how they are judged.
struct ScoredRun {
  std::shared_ptr<const Evaluator> evaluator;
  SplitScores split{};
  std::optional<at::Tensor> threshold_scores{};  // as Evaluator::evaluate() takes them; never resampled
  std::optional<SplitScores> calibration{};      // as well
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
/// lie when images are drawn with replacement, the same for both runs. Seeds vary nothing here: it is what two trained
/// models differ by, on images like these.
///
/// Throws std::invalid_argument where a metric is not evaluated, ShapeError where the runs have different labels, and
/// Interrupted between two resamples after a signal.
std::vector<BootstrapInterval> paired_bootstrap(const ScoredRun& first, const ScoredRun& second,
                                                const std::vector<std::string>& metrics,
                                                const BootstrapOptions& options, const std::string& stage,
                                                ProgressBar& bar);

}  // namespace settrain
