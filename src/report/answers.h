// What one run's model answers to the images of a split.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "src/core/progress_bar.h"
#include "src/report/judged_sets.h"
#include "src/train/experiment_schema.h"

namespace settrain {

struct Answers {
  std::string checkpoint;  // "best-val-top5"
  Dataset dataset;
  std::string split;                  // of the dataset
  std::vector<int64_t> train_counts;  // [classes] training labels, noise included
  SplitScores scores;                 // of those of its images that could be read
  JudgedSets sets;
};

/// Evaluates a checkpoint of the run in folder `run` again, on its test split or, where eval.splits has none, on the
/// last of these. Throws what open_trained_run(), load_weights() and score_split() throw.
Answers evaluate_answers(const Registries& registries, at::Device device, const std::filesystem::path& run,
                         const std::string& checkpoint, ProgressBar& bar);

}  // namespace settrain
