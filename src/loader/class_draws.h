// How the draws of a training epoch are shared among the classes: data.sampler (Kang et al., ICLR 2020).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/dataset.h"

namespace settrain {

struct Sampling {
  std::string sampler = kUniform;
  int64_t epochs = 1;  // of the run

  static constexpr const char *kUniform = "uniform", *kClassBalanced = "class_balanced", *kSquareRoot = "square_root",
                              *kProgressive = "progressive";
};

/// [classes] the probability that a draw is of class j, of which there are n_j = counts[j] images: n_j^q / sum_i n_i^q
/// with q = 1 (uniform), 0 (class_balanced) or 1/2 (square_root); progressive: (1 - t/T) times that of q = 1 plus t/T
/// times that of q = 0, t the epoch from 0, T the run's epochs, which t does not pass. Without images: 0.
std::vector<double> class_probabilities(const Sampling& sampling, const std::vector<int64_t>& counts, int64_t epoch);

/// Of every class its training images, and its expected draws in the first and in the last epoch. Images with several
/// labels belong to the first.
std::string class_counts_csv(const Dataset& dataset, const Sampling& sampling);

/// The imbalance of the training images and of the expected draws, for the log.
std::string describe_imbalance(const Dataset& dataset, const Sampling& sampling);

}  // namespace settrain
