// A run's folder: its files, and the lock of the process that writes to it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "src/core/files.h"

namespace settrain {

/// The files of a run. The hidden file .settrain-run marks the folder as a run's, and is locked for as long as a
/// process writes to it.
class RunFolder {
 public:
  static constexpr const char* kLast = "last";  // in `select`, for the last epoch

  /// A new run in `path`, which is made where it is missing; locked until the object goes. The files of a process
  /// that was killed before it recorded its config are removed. Throws RunError where `path`
  ///  - is not empty and not a run's folder: nothing in it is touched, overwrite or not;
  ///  - holds a run, unless `overwrite`: then the files that a run makes are removed, and all others stay;
  ///  - is being written by another process, or cannot be made.
  static RunFolder create(const std::filesystem::path& path, bool overwrite);

  /// The run in `path`, for reading: not locked. Throws RunError, with the nearest run where there is one, if `path` is
  /// not a run's folder.
  static RunFolder open_existing(const std::filesystem::path& path);

  /// The run in `path`, to go on with it: locked until the object goes; files that a killed process left
  /// half-written are removed. Throws RunError as open_existing(), and where another process writes to it.
  static RunFolder open_to_resume(const std::filesystem::path& path);

  /// Throws RunError where create() would since `path` is not empty and not a run's folder.
  static void check_not_foreign(const std::filesystem::path& path);

  /// The folder of the run whose checkpoint the file is; an empty path where it lies in none.
  static std::filesystem::path of_checkpoint(const std::filesystem::path& file);

  /// Whether `path` is a run's folder.
  static bool is_there(const std::filesystem::path& path);

  /// Whether `path` is the folder of a run that can be gone on with: one that has recorded its config.
  static bool is_begun(const std::filesystem::path& path);

  /// Whether the run in `path` has its results.json, and it is whole. Without it the run is not finished.
  static bool has_results(const std::filesystem::path& path);

  /// Removes results.json and results.txt, which no longer hold.
  void remove_results() const;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.yaml"; }
  std::filesystem::path provenance() const { return path_ / "provenance.json"; }
  std::filesystem::path class_counts() const { return path_ / "class_counts.csv"; }
  std::filesystem::path data_files() const { return path_ / "data_files.txt.gz"; }
  std::filesystem::path log() const { return path_ / "log.txt"; }
  std::filesystem::path metrics_jsonl() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path metrics_csv() const { return path_ / "metrics.csv"; }
  std::filesystem::path results_json() const { return path_ / "results.json"; }
  std::filesystem::path results_text() const { return path_ / "results.txt"; }
  std::filesystem::path report() const { return path_ / "report.html"; }
  std::filesystem::path tensorboard() const { return path_ / "events.out.tfevents.settrain"; }
  std::filesystem::path last_checkpoint() const { return path_ / "checkpoints" / "last.safetensors"; }
  /// The rules that were calibrated for the checkpoint of that name.
  std::filesystem::path rules(const std::string& checkpoint) const { return path_ / ("rules-" + checkpoint + ".json"); }
  std::filesystem::path calibration(const std::string& checkpoint) const {
    return path_ / ("calibration-" + checkpoint + ".json");
  }
  /// checkpoints/NAME.safetensors, whether it is there or not.
  std::filesystem::path checkpoint_file(const std::string& name) const {
    return path_ / "checkpoints" / (name + ".safetensors");
  }
  /// The same, which must be there. Throws RunError, naming those that are there, where there is none of that name.
  std::filesystem::path checkpoint(const std::string& name) const;
  /// The checkpoint that an entry of `select` keeps: checkpoints/best-val-macro_top5.safetensors for
  /// "val/macro_top5", the last one for kLast.
  std::filesystem::path selected_checkpoint(const std::string& select) const;
  /// Its name: "best-val-macro_top5"; "best-val-coverage@conformal-pas-0.1" for "val/coverage@conformal:pas:0.1", since
  /// colons and parentheses mean something else to shells and to scp.
  static std::string checkpoint_name(const std::string& select);

 private:
  explicit RunFolder(std::filesystem::path path, std::optional<FileLock> lock = std::nullopt);

  std::filesystem::path path_;
  std::optional<FileLock> lock_;
};

}  // namespace settrain
