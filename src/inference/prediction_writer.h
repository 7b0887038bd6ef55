// What `settrain predict` answers, a row at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "src/inference/set_maker.h"

namespace settrain {

/// The answer to an image, or to a group of them.
struct Prediction {
  std::string name;                    // the image's path, or the group
  int64_t images = 1, unreadable = 0;  // of the group; those that could be read, and those that could not
  std::string error{};                 // of the first image that could not be read
  std::vector<PredictedSet> sets{};    // one a rule; none where no image could be read
};

class PredictionWriter {
 public:
  virtual ~PredictionWriter() = default;
  virtual void write(const Prediction& row) = 0;
  /// To be called after the last row.
  virtual void finish() = 0;
  /// Whether the rows go where a progress bar may be.
  virtual bool is_shown() const { return false; }
};

/// Throws ConfigError unless the file's ending is one that prediction_file() writes.
void check_prediction_file(const std::filesystem::path& file);

/// Writes JSON lines or CSV, by the file's ending (docs/file_formats.md), through a temporary file: it is there whole
/// or not at all. Throws ConfigError for another ending, RunError where it cannot be written.
std::unique_ptr<PredictionWriter> prediction_file(const std::filesystem::path& file, const SetMaker& maker,
                                                  bool has_groups);

/// A table for people, which begins at once; long sets are cut. `widest_name`: characters of the longest one.
std::unique_ptr<PredictionWriter> prediction_table(std::ostream& output, const SetMaker& maker, bool has_groups,
                                                   size_t widest_name);

}  // namespace settrain
