// An artificial long tail, data.long_tail: keys of the section `data` that every data set has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "src/config/config.h"
#include "src/config/key.h"

namespace settrain {

struct LongTailOptions {
  double imbalance = 1;
  int64_t seed = 1;
  std::string rounding = kNearest;

  static constexpr const char *kNearest = "nearest", *kDown = "down";
  static config::Keys keys();
};

/// Refuses the other keys of data.long_tail where the imbalance is 1.
void long_tail_rule(const config::Config& config);

/// The number of images that apply_long_tail() keeps of each class, given the classes' `counts`.
std::vector<int64_t> long_tail_counts(const LongTailOptions& options, std::vector<int64_t> counts);

/// Keeps n_j = max(1, n_0 * imbalance^(-j / (L - 1))) training images of class j, rounded as the options say, or all
/// where there are fewer: n_0 is the largest class' number, j runs from 0 to L - 1 (Cao et al., "Learning imbalanced
/// datasets with label-distribution-aware margin loss", 2019). The seed selects them. An imbalance of 1 changes
/// nothing. Throws KeyError where P(y | x) is known (the data set `synthetic` has an imbalance of its own).
void apply_long_tail(const LongTailOptions& options, Dataset& dataset);

}  // namespace settrain
