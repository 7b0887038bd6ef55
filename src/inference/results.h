// What a run comes to: its chosen checkpoints, evaluated.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/run_folder/run_folder.h"
#include "src/train/evaluation.h"

namespace settrain {

/// One checkpoint's results.
struct CheckpointResults {
  std::string checkpoint;  // "best-val-top5", "last"
  int64_t epoch = 0;       // completed epochs when it was made
  std::vector<SplitResult> splits;
};

/// Says how many images could not be read and were left out, where there are any: data.on_bad_image.
void log_skipped_images(const Experiment& run);

/// Evaluates every checkpoint on the splits of eval.splits; of several processes the first names and reads them, and
/// the list of the others is not looked at. Checkpoints of one epoch hold the same weights and are evaluated once.
/// Leaves the last one's weights in the model. Throws what load_weights() throws.
std::vector<CheckpointResults> evaluate_checkpoints(Experiment& run, const std::vector<std::filesystem::path>& files,
                                                    ProgressBar& bar);

/// The tables for people: one a checkpoint, and the sizes of average-K's sets on the last split.
std::string format_results(const Experiment& run, const std::vector<CheckpointResults>& results);

/// results.json: an array with an object a checkpoint: its name, epoch, values by split and metric, and set sizes.
nlohmann::ordered_json results_json(const Experiment& run, const std::vector<CheckpointResults>& results);

/// Writes results.json and results.txt into the run folder.
void write_results(const Experiment& run, const RunFolder& folder, const std::vector<CheckpointResults>& results);

}  // namespace settrain
