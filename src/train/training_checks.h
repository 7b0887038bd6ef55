// Faults of the data that would end a training late, found before its first step.
#pragma once

#include "src/loader/loader.h"
#include "src/train/experiment.h"

namespace settrain {

/// Whether every epoch has a batch of one image, even where all can be read.
bool has_batch_of_one(const Loader& training);

/// Throws DataError where every epoch has a batch of one image and the model cannot be trained on one. Without this
/// check the first epoch would fail at its end.
void check_batches_of_one(const Experiment& run, const Loader& training);

/// Throws DataError where a training would end late or be in vain: an image file of the training split, or of one that
/// the run scores, is certain to be unreadable, or where data.on_bad_image is skip all files of such a split
/// (refuse_unreadable()); or all training images are of one class.
void check_training_data(const Experiment& run);

}  // namespace settrain
