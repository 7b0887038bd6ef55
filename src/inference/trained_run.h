// A run that was trained, opened again to ask its model about images.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/run_folder/run_folder.h"
#include "src/train/checkpoint.h"
#include "src/train/experiment.h"

namespace settrain {

struct TrainedRun {
  config::Texts select;                            // of its config
  std::vector<std::filesystem::path> checkpoints;  // those that were asked for, at least one
  Experiment experiment;                           // with weights as drawn until load_weights()
};

/// Opens the run in `folder` as it was trained: its data and its model. `checkpoints` are names ("last",
/// "best-val-top5"); without any, those that stand for the run: the best by every metric of `select` that are there, or
/// the last one where there are none. `settings` are key.path=value over its config.
///
/// Throws RunError where the folder is no run's or a checkpoint is not there, ConfigError where a setting would make
/// it another run, and what make_experiment() throws. Checkpoints and settings are looked at before the data are.
TrainedRun open_trained_run(const Registries& registries, const std::filesystem::path& folder,
                            const std::vector<std::string>& checkpoints, at::Device device,
                            const std::vector<std::string>& settings = {});

/// Throws ConfigError where a setting, key.path=value, would make a trained model another one.
void check_settings(const config::Config& config, const std::vector<std::string>& settings);

/// The files of the checkpoints that stand for a run; see open_trained_run().
std::vector<std::filesystem::path> chosen_checkpoints(const RunFolder& folder, const config::Texts& select);

/// Says so where `files` are the last checkpoint in place of best ones that `select` asked for.
void warn_of_last_weights(const RunFolder& folder, const config::Texts& select,
                          const std::vector<std::filesystem::path>& files);

/// Puts the weights that a checkpoint was evaluated with into the model, which can then score images, and returns the
/// checkpoint. Throws RunError where it cannot be read, or is of another model or of other data.
Checkpoint load_weights(Experiment& run, const std::filesystem::path& checkpoint);

}  // namespace settrain
