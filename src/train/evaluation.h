// From a model to the metrics of whole splits.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/core/progress_bar.h"
#include "src/eval/crop_average.h"
#include "src/eval/results_table.h"
#include "src/train/experiment.h"

namespace settrain {

/// The scores of a batch with images, [batch.size(), classes] float on the model's device: by the model as it is, which
/// should be in evaluation mode; those of several views averaged.
at::Tensor score_batch(Model& model, const Batch& batch, const ComputePolicy& policy, const CropAverage& average);

/// The scores of every sample of a split that could be read, by the model in evaluation mode, on the model's device; of
/// ten crops averaged as eval.crop_average says. Several processes score its batches in turn, and each has them all in
/// the end. Where images have several labels and one could not be read, all have their first label alone, with a
/// warning. Throws Interrupted after the batch in hand where a signal asked to stop.
SplitScores score_split(const Experiment& run, const Split& split, ViewUse use, ProgressBar& bar);

/// A split's scores, and those that set average-K's thresholds and calibrate set rules for it.
struct JudgedScores {
  SplitScores split{};
  std::optional<at::Tensor> thresholds{};    // [any samples, classes]; none: the split's own
  std::optional<SplitScores> calibration{};  // none: half of the split's own
};

/// The scores of a split, with what evaluate_splits() judges it by. Throws as score_split().
JudgedScores score_with_thresholds(const Experiment& run, const std::string& split, ProgressBar& bar);

/// The metrics of one split.
struct SplitResult {
  std::string split;  // "val"
  EvaluationResult result;
};

/// Evaluates the splits ("train", "val", "calibration", "test") in that order. Average-K's thresholds come from where
/// eval.threshold_from says. The rules of eval.rules are calibrated for the test split on the calibration split, or on
/// all of validation where there is none; of any other split one half calibrates them for the other. Throws ConfigError
/// where that is neither val nor same nor a folder.
std::vector<SplitResult> evaluate_splits(const Experiment& run, const std::vector<std::string>& splits, ViewUse use,
                                         ProgressBar& bar);

/// The splits that an evaluation of `splits` scores: these, the one that sets average-K's thresholds, and the one that
/// calibrates set rules.
std::set<std::string> splits_to_score(const config::Config& config, const std::vector<std::string>& splits,
                                      bool has_calibration);

/// The splits whose images such a metric follows from, "test/avg5" or "val/size@top:5": its own, and those that set
/// average-K's thresholds or calibrate the rule. "threshold": the folder of eval.threshold_from.
std::set<std::string> splits_behind(const std::string& metric, const config::Config& config, bool has_calibration);

/// How many samples evaluate_splits() scores: those of the splits, and of others that set thresholds or calibrate.
/// `threshold_split`: Experiment::threshold_split.
int64_t samples_to_score(const config::Config& config, const Dataset& dataset,
                         const std::optional<Split>& threshold_split, const std::vector<std::string>& splits);

/// Has the first process log the images and count the batches that the others have left out since the last call
/// (data.on_bad_image). Collective.
void gather_skipped_images(ProcessGroup& group, SkippedImages& skipped);

/// The columns of the table of results, one a split; beside it, where the data's P(y | x) is known, what the
/// Bayes-optimal sets reach.
std::vector<ResultsColumn> results_columns(const config::Config& config, const Dataset& dataset,
                                           const LabelNoiseReport& label_noise,
                                           const std::vector<SplitResult>& results);

}  // namespace settrain
