// Holding out part of the training images for validation, and training on some of the others or all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "datasets/data_facts.h"
#include "datasets/dataset.h"
#include "src/config/key.h"

namespace settrain {

struct SplitOptions {
  int64_t val_size = 0;
  std::string split;  // "uniform" or "balanced"
  int64_t split_seed = 0;
  int64_t train_size = kAll;

  static constexpr int64_t kAll = 0;  // what the word all stands for in train_size

  /// The defaults are the data set's.
  static config::Keys keys(int64_t default_val_size = 5000, const char* default_split = "uniform");
  /// Lines that say which split it is, for digests.
  std::string recipe() const;
};

/// Indices of samples, each list ascending; together they are 0 to n - 1 where `train_size` is all.
struct HeldOut {
  std::vector<int64_t> train, val;
};

/// Draws `val_size` of the samples with these labels, by the split's own seed: uniformly, or the same number of every
/// class. Of the others `train_size` are kept for training, equally many of every class, or all; a larger subset holds
/// the smaller ones. Throws ConfigError where that many cannot be drawn, or where `train_size`, or `val_size` in a
/// balanced split, is no multiple of the classes.
HeldOut hold_out(std::span<const int64_t> labels, int64_t num_classes, const SplitOptions& options);

/// What holding out makes of the facts of a data set whose training images are all in `published.train`.
DataFacts held_out_facts(DataFacts published, const SplitOptions& options);

/// The split `name` with the samples `ids` of `images`; `labels` are those of all of `images`.
Split make_split(std::string name, std::shared_ptr<const ImageSource> images, std::vector<int64_t> ids,
                 std::span<const int64_t> labels);

/// The split `name` with all of `images`.
Split make_split(std::string name, std::shared_ptr<const ImageSource> images, std::vector<int64_t> labels);

}  // namespace settrain
