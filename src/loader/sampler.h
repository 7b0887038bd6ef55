// The images of an epoch and their order, and how the draws are shared among the classes: data.sampler (Kang et al.,
// ICLR 2020).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "datasets/dataset.h"

namespace settrain {

struct Sampling {
  std::string sampler = kUniform;
  int64_t epochs = 1;   // of the run
  int64_t repeats = 1;  // how often each image that an epoch takes comes, see epoch_order()

  static constexpr const char *kUniform = "uniform", *kClassBalanced = "class_balanced", *kSquareRoot = "square_root",
                              *kProgressive = "progressive";
};

/// [classes] the probability that a draw is of class j, which has n_j = counts[j] images: n_j^q / sum_i n_i^q with q =
/// 1 (uniform), 0 (class_balanced) or 1/2 (square_root). progressive: (1 - t/T) times the probability for q = 1 plus
/// t/T times that for q = 0, where t = min(epoch, T) and T is the run's number of epochs. A class without images has 0.
std::vector<double> class_probabilities(const Sampling& sampling, const std::vector<int64_t>& counts, int64_t epoch);

/// A table of every class' training images and its expected draws in the first and in the last epoch. An image with
/// several labels belongs to the class of the first.
std::string class_counts_csv(const Dataset& dataset, const Sampling& sampling);

/// The imbalance of the training images and of the expected draws, for the log.
std::string describe_imbalance(const Dataset& dataset, const Sampling& sampling);

/// One image of an epoch.
struct Draw {
  int64_t position = 0;    // in the split
  int64_t repetition = 0;  // how often the epoch took the image before

  bool operator==(const Draw&) const = default;
};

/// The draws of an epoch, as many as the split has images: a function of (seed, epoch). `labels`: [images] classes. The
/// uniform sampler takes every image once, shuffled. Without a seed, every sampler takes each image once in the split's
/// own order. The other samplers draw a class for every draw, with class_probabilities(), and take the next image in a
/// random order of the class. All images of a class are taken before one is repeated, and every round has another
/// order. With sampling.repeats = r the first 1/r of these draws come r times each, one after the other, so that a
/// batch holds several views of an image (repeated augmentation, Hoffer et al., CVPR 2020).
std::vector<Draw> epoch_order(const std::vector<int64_t>& labels, std::optional<uint64_t> seed, int64_t epoch,
                              const Sampling& sampling = {});

}  // namespace settrain
