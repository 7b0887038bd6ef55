// What a run's model says of its data, in the form that rules take.
#pragma once

#include <string>

#include "src/core/progress_bar.h"
#include "src/inference/score_file.h"
#include "src/train/experiment.h"

namespace settrain {

/// The scores of the split ("train", "val", "calibration", "test"), times the loss' score scale, on the CPU. Throws
/// what score_split() throws.
SplitScores labelled_scores(const Experiment& run, const std::string& split, ProgressBar& bar);

/// Why rules that the images of a split calibrate promise nothing: the model was trained on them, or chosen by them. An
/// empty text where they do.
std::string why_no_guarantee(const std::string& split);

/// The split that calibrates rules, and why_no_guarantee().
struct CalibrationSplit {
  std::string name, no_guarantee;
};

/// "calibration" where data.calibration_share keeps one apart, else "val". Throws ConfigError where there is neither.
CalibrationSplit calibration_split(const Experiment& run);

}  // namespace settrain
