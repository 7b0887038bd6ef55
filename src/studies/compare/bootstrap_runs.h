// The paired bootstrap of the runs that are compared: their checkpoints are evaluated again, image by image.
#pragma once

#include <c10/core/Device.h>

#include <vector>

#include "src/studies/compare/bootstrap.h"
#include "src/train/experiment_schema.h"

namespace settrain {

enum class BootstrapPairs {
  kOneSharedSeed,  // of settings that share one seed only with the first, which the seeds say nothing about
  kAll             // of every seed that a setting shares with the first
};

/// Adds a paired bootstrap to the differences of `comparisons`, which were made of `settings`. Each checkpoint that a
/// value is of is evaluated once for every pair of its run, and no more than two runs' scores are kept at a time.
/// Throws RunError, naming both folders, where two runs were tested on other images or labels, and what evaluating a
/// run throws.
void add_bootstraps(const Registries& registries, at::Device device, const std::vector<Setting>& settings,
                    BootstrapPairs pairs, const BootstrapOptions& options, ProgressBar& bar,
                    std::vector<MetricComparison>& comparisons);

}  // namespace settrain
