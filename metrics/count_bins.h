// Groups of classes by their number of training images, between bounds that the config names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
};

}  // namespace settrain
