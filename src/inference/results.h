// The results of a run: its chosen checkpoints, evaluated.
#pragma once

#include <filesystem>
#include <map>
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
  std::vector<ResultsColumn> columns;          // results_columns() of the splits
  std::map<std::string, std::string> digests;  // Split::digest of the training split and of those of `splits`
};

/// Warns of images that could not be read and were left out (data.on_bad_image), and of batches that were left out for
/// them, with their numbers.
void log_skipped_images(const SkippedImages& skipped);

/// Evaluates every checkpoint on the splits of eval.splits. In a training of several processes only the first process
/// needs `files`, and reads them. Checkpoints of one step hold the same weights and are evaluated once. The weights of
/// the last one stay in the model. Throws what load_weights() throws.
std::vector<CheckpointResults> evaluate_checkpoints(Experiment& run, const std::vector<std::filesystem::path>& files,
                                                    ProgressBar& bar);

/// Tables for people: one for each checkpoint, and the sizes of average-K's sets on the last split.
std::string format_results(const std::vector<CheckpointResults>& results);

/// results.json: an array with an object for each checkpoint: its name, epoch, values by split and metric, set sizes,
/// and the digests of the splits' images.
nlohmann::ordered_json results_json(const std::vector<CheckpointResults>& results);

/// Writes results.json and results.txt into the run folder.
void write_results(const RunFolder& folder, const std::vector<CheckpointResults>& results);

}  // namespace settrain
