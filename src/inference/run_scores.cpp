#include "src/inference/run_scores.h"

#include "src/core/error.h"
#include "src/train/evaluation.h"

namespace settrain {

SplitScores labelled_scores(const Experiment& run, const std::string& split, ProgressBar& bar) {
  const SplitScores scores = score_split(run, split_named(run.dataset, split), run.eval.view_use(), bar);
  return {scores.scores.cpu().mul(run.loss->score_scale()), scores.labels.cpu()};
}

std::string why_no_guarantee(const std::string& split) {
  if (split == "train") return "the model was trained on these images";
  if (split != "val") return "";
  return "these validation images may have chosen the epoch or a setting; data.calibration_share keeps some apart";
}

CalibrationSplit calibration_split(const Experiment& run) {
  if (run.dataset.calibration.size() > 0) return {"calibration", ""};
  if (run.dataset.val.size() == 0) {
    throw ConfigError(
        "the run has no validation images to calibrate rules on; settrain calibrate --scores takes others");
  }
  return {"val", why_no_guarantee("val")};
}

}  // namespace settrain
