// `settrain predict`: the answers of a trained model to images, row by row.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "datasets/feature_file.h"
#include "datasets/file_table.h"
#include "src/core/progress_bar.h"
#include "src/inference/image_inputs.h"
#include "src/inference/set_maker.h"
#include "src/inference/trained_model.h"

namespace settrain {

/// The answer to an image, or to a group of images.
struct Prediction {
  std::string name;                    // the image's path, or the group
  int64_t images = 1, unanswered = 0;  // of the group: images with scores, and images that could not be read or scored
  std::string error{};                 // why the first of them has no scores
  std::vector<PredictedSet> sets{};    // [rules]; empty where no image has scores
};

class PredictionWriter {
 public:
  virtual ~PredictionWriter() = default;
  virtual void write(const Prediction& row) = 0;
  /// Must be called after the last row.
  virtual void finish() = 0;
  /// Whether the rows are printed where a progress bar may be.
  virtual bool is_shown() const { return false; }
};

/// Throws ConfigError unless the file's ending is one that prediction_file() writes.
void check_prediction_file(const std::filesystem::path& file);

/// Writes JSON lines or CSV, by the file's ending (docs/file_formats.md), through a temporary file, so that the file is
/// there whole or not at all. Throws ConfigError for another ending, RunError where it cannot be written.
std::unique_ptr<PredictionWriter> prediction_file(const std::filesystem::path& file, const SetMaker& maker,
                                                  bool has_groups);

/// A table for people, printed row by row; long sets are cut. `widest_name`: bytes of the longest name of a row.
std::unique_ptr<PredictionWriter> prediction_table(std::ostream& output, const SetMaker& maker, bool has_groups,
                                                   size_t widest_name);

/// Writes a row for each image, in their order; with groups, a row for each group when its last image has been seen. A
/// group's sets are those of the mean log-probability of its images. The rows do not depend on the number of loader
/// threads. Memory holds the scores of one batch and the sums of the unfinished groups. Returns how many images could
/// not be read, or have scores that are not finite; their rows say so. Throws Interrupted after the current batch where
/// a signal asked to stop.
int64_t predict(const TrainedModel& model, const FileTable& images, const std::optional<ImageGroups>& groups,
                const SetMaker& maker, PredictionWriter& writer, ProgressBar& bar);

/// The same for the features of images, which go to the model's head: a row for each, in the file's order, by its path
/// or its number. `file` names the features in messages. Returns how many have scores that are not finite. Throws
/// DataError where the head takes features of another width or of other weights, or pixels.
int64_t predict_features(const TrainedModel& model, const FeatureFile& features, const std::string& file,
                         const SetMaker& maker, PredictionWriter& writer, ProgressBar& bar);

/// The name of a row of features in the answers: its image's path, or "row 7".
std::string row_name(const FeatureFile& features, int64_t row);

}  // namespace settrain
