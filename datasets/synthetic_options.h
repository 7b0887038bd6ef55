// Keys of the data set `synthetic`.
#pragma once

#include <cstdint>
#include <string>

#include "src/config/key.h"

namespace settrain {

struct SyntheticOptions {
  int64_t num_classes = 0, group_size = 0;
  int64_t train_size = 0, val_size = 0, test_size = 0;
  int64_t image_size = 0, channels = 0;
  double ambiguity = 0, imbalance = 0;
  int64_t pixel_noise = 0;
  int64_t labels_per_image = 1;
  int64_t seed = 0;

  static constexpr int64_t kRunSeed = -1;  // what the word auto stands for
  static config::Keys keys();
  /// A text that tells apart any two data sets, for digests.
  std::string recipe() const;
};

}  // namespace settrain
