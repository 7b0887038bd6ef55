// A trained run, opened again to evaluate its model on its data.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "metrics/split_scores.h"
#include "src/checkpoint/checkpoint.h"
#include "src/core/progress_bar.h"
#include "src/run_folder/run_folder.h"
#include "src/train/experiment.h"

namespace settrain {

struct TrainedRun {
  config::Texts select;                            // the key `select` of its config
  std::vector<std::filesystem::path> checkpoints;  // the chosen ones, at least one
  Experiment experiment;                           // its weights are random until load_weights()
};

/// Opens the run in `folder` as it was trained: its data and its model. `checkpoints` are names ("last",
/// "best-val-top5"). Without any: the best checkpoints by the metrics of `select` that exist, or else the last one.
/// `settings` are key.path=value over its config.
///
/// Throws RunError where the folder is not a run's or a checkpoint is missing, ConfigError where a setting would make
/// it another run, and what make_experiment() throws. Checkpoints and settings are checked before the data are loaded.
TrainedRun open_trained_run(const Registries& registries, const std::filesystem::path& folder,
                            const std::vector<std::string>& checkpoints, at::Device device,
                            const std::vector<std::string>& settings = {});

/// Throws ConfigError where a setting, key.path=value, would change the trained model.
void check_settings(const config::Config& config, const std::vector<std::string>& settings);

/// The files of the checkpoints that open_trained_run() takes where none is named.
std::vector<std::filesystem::path> chosen_checkpoints(const RunFolder& folder, const config::Texts& select);

/// Warns where `files` is the last checkpoint, although `select` asks for the best ones.
void warn_of_last_weights(const RunFolder& folder, const config::Texts& select,
                          const std::vector<std::filesystem::path>& files);

/// Copies the weights that a checkpoint was evaluated with into the model, and returns the checkpoint. Warns of splits
/// whose images have changed since, see check_same_data(). Throws RunError where it cannot be read, or belongs to
/// another model or data set.
Checkpoint load_weights(Experiment& run, const std::filesystem::path& checkpoint);

/// The scores of the split ("train", "val", "calibration", "test"), times the loss' score scale, on the CPU. Throws
/// what score_split() throws.
SplitScores labelled_scores(const Experiment& run, const std::string& split, ProgressBar& bar);

}  // namespace settrain
