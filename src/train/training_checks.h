// Faults of the data that would end a training late, found before its first step.
#pragma once

#include <string>
#include <vector>

#include "src/loader/loader.h"
#include "src/train/experiment.h"

namespace settrain {

/// Whether every epoch has a batch of one image, even where all can be read.
bool has_batch_of_one(const Loader& training);

/// Throws DataError where every epoch has a batch of one image and the model cannot be trained on one. Without this
/// check the first epoch would fail at its end.
void check_batches_of_one(const Experiment& run, const Loader& training);

/// Throws DataError where a training would end late or be in vain. So it is where all training images are of one class.
/// It also is where image files are certain to be unreadable (refuse_unreadable()) that the run trains on, scores or
/// calibrates on, or that are of the splits `read_too`; where data.on_bad_image is skip, only a split without any
/// other.
void check_training_data(const Experiment& run, const std::vector<std::string>& read_too = {});

}  // namespace settrain
