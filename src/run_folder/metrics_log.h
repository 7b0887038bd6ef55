// The numbers of a run over time, as JSON lines and as a table.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "src/core/files.h"

namespace settrain {

/// The metrics at one moment of a run.
struct MetricsRow {
  int64_t step = 0;                                    // optimizer steps taken
  int64_t epoch = 0;                                   // epochs completed
  std::vector<std::pair<std::string, double>> values;  // "train/loss", "val/top5", "time/wall_s" (never compared), ...
};

/// The complete lines of metrics.jsonl, which is only read: its run may still be training, or may have been
/// killed in the middle of a line. `epochs`: how many the run has finished, a row each; 0 for a run without results,
/// whose file may be missing. Throws RunError, naming the file, where it has fewer rows than that, and also the line
/// where one cannot be read.
std::vector<MetricsRow> read_metrics(const std::filesystem::path& jsonl, int64_t epochs);

/// Writes metrics.jsonl, one object a line: {"step": 100, "epoch": 1, "train/loss": 2.5}, numbers so that they read
/// back to the last bit, null for what is not finite; and metrics.csv, the same rows as a table with a column for every
/// name that occurs. The table is derived: it is rebuilt from the lines when the log is opened, cut, or meets a new
/// column.
///
/// Throws RunError, naming the file and line, where a file cannot be written or its lines cannot be read.
class MetricsLog {
 public:
  /// Goes on where existing files end; an incomplete last line, left by a killed process, is removed.
  MetricsLog(const std::filesystem::path& jsonl, std::filesystem::path csv);

  /// Both files are complete when this returns. Throws std::invalid_argument where a name is empty, "step" or "epoch".
  void append(const MetricsRow& row);

  /// Bytes of metrics.jsonl, which are on the disk when this returns: what a checkpoint keeps.
  uint64_t offset();

  /// Removes what was written after offset() returned `offset`.
  void truncate_to(uint64_t offset);

  const std::vector<MetricsRow>& rows() const { return rows_; }

 private:
  void read_rows();
  bool add_columns(const MetricsRow& row);
  std::string csv_line(const MetricsRow& row) const;
  void write_csv();

  AppendFile jsonl_;
  std::filesystem::path csv_;
  std::vector<MetricsRow> rows_;
  std::vector<std::string> columns_;  // without step and epoch, in the order in which they came up
};

}  // namespace settrain
