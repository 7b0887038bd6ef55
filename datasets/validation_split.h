// A validation split held out of the training images, and a subset of the others for training.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "src/config/key.h"

namespace settrain {

struct SplitOptions {
  int64_t val_size = 0;
  std::string split;  // "uniform" or "balanced"
  int64_t split_seed = 0;
  int64_t train_size = kAll;

  static constexpr int64_t kAll = 0;  // the word all in train_size

  /// The defaults depend on the data set.
  static config::Keys keys(int64_t default_val_size = 5000, const char* default_split = "uniform");
  /// Lines that identify the split, for digests.
  std::string recipe() const;
};

/// Indices of samples, each list ascending; together they are 0 to n - 1 where `train_size` is all.
struct HeldOut {
  std::vector<int64_t> train, val;
};

/// Draws `val_size` of the samples with these labels, with the split's own seed: uniformly, or the same number of every
/// class. `train_size` of the others are kept for training, equally many of every class; or all of them. A larger
/// subset contains the smaller ones. Throws KeyError where that many cannot be drawn, or where `train_size`, or
/// `val_size` in a balanced split, is no multiple of the number of classes.
HeldOut hold_out(std::span<const int64_t> labels, int64_t num_classes, const SplitOptions& options);

/// The facts after hold_out(), where `published.train` counts all training images.
DataFacts held_out_facts(DataFacts published, const SplitOptions& options);

/// The split `name` with the samples `ids` of `images`; `labels` are those of all of `images`.
Split make_split(std::string name, std::shared_ptr<const ImageSource> images, std::vector<int64_t> ids,
                 std::span<const int64_t> labels);

/// The split `name` with these labels, whose samples are consecutive images: their ids start at `first_id`.
Split make_split(std::string name, std::shared_ptr<const ImageSource> images, std::vector<int64_t> labels,
                 int64_t first_id = 0);

}  // namespace settrain
