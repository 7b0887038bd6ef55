// A trained model asked about images.
#pragma once

#include <optional>

#include "datasets/file_table.h"
#include "src/core/progress_bar.h"
#include "src/inference/image_groups.h"
#include "src/inference/prediction_writer.h"
#include "src/inference/set_maker.h"
#include "src/inference/trained_model.h"

namespace settrain {

/// Writes a row an image, in their order; or a row a group, when its last image has been seen. The rows are the same
/// for any number of loader threads, and only the scores of the batch in hand are kept, and the sums of groups that go
/// on. Returns how many images could not be read: their rows say why. Throws Interrupted after the batch in hand where
/// a signal asked to stop.
///
/// A group's answer is that to the mean log-probability of its images.
int64_t predict(const TrainedModel& model, const FileTable& images, const std::optional<ImageGroups>& groups,
                const SetMaker& maker, PredictionWriter& writer, ProgressBar& bar);

}  // namespace settrain
