// The training data, as far as a loss is built from them.
#pragma once

#include <cstdint>
#include <vector>

namespace settrain {

/// What a loss is built for.
struct LossContext {
  int64_t num_classes;
  std::vector<int64_t> class_counts;  // [classes] training labels of every class, label noise included
  std::vector<int64_t> train_ids;     // [training samples] their ids, as in LossInput::sample_ids
  std::vector<int64_t> train_labels;  // [training samples] label noise included
  uint64_t seed = 0;                  // of random initial values
};

}  // namespace settrain
