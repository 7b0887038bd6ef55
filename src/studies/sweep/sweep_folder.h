// A sweep's folder: which of its runs are done, with which results.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/config/schema.h"
#include "src/core/files.h"
#include "src/studies/sweep/grid_runs.h"

namespace settrain {

enum class PointStatus {
  kPending,   // nothing is there
  kStarted,   // a run that can be resumed
  kFinished,  // a run with results
  kFailed     // it ended with an error, which is kept
};

/// "pending", "started", "finished", "failed".
std::string_view name_of(PointStatus status);

/// The results of a finished run, of the checkpoint that the sweep's metric chose.
struct PointResult {
  std::string checkpoint;  // "best-val-top5"
  int64_t epoch = 0;
  std::vector<std::pair<std::string, double>> metrics;                    // "val/top5", "test/avg5_size", ...
  std::vector<std::pair<std::string, std::vector<int64_t>>> set_sizes{};  // "test/avg5": images with 0, 1, ... classes
  std::map<std::string, std::string> digests{};  // of the images of "train", "test", ...; empty for an early version
  bool chose_nothing = false;  // the metric has no value on the run's data, and the checkpoint was not chosen by it

  /// NaN where there is none of that name.
  double metric(const std::string& name) const;
};

/// The results, in a run's folder, of the checkpoint that `select` ("val/top5") chose. A run of no epochs had none to
/// choose from: its last checkpoint is taken. The last checkpoint is also taken where every value of `select` is
/// NaN; if it was not evaluated, the first evaluated one. Throws RunError where they cannot be read or lack that
/// checkpoint.
PointResult read_result(const std::filesystem::path& run, const std::string& select);

/// "val/few_top1 has no value on the data of ...", for a result that `select` did not choose.
std::string chose_nothing_text(const std::string& select, const PointResult& result);

/// Finds runs that cannot be compared since their images changed in between.
class ImageComparison {
 public:
  /// Keeps a remark where an earlier run was trained on the same images and evaluated on others of some split.
  void add(const std::filesystem::path& run, const PointResult& result);

  /// "runs/a and runs/b: the test images were not the same", for each split the first two such runs.
  const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  using TrainedOn = std::pair<std::string, std::string>;  // digest of the training images, name of a split

  std::map<TrainedOn, std::pair<std::string, std::filesystem::path>> first_{};  // the split's digest, and a run of it
  std::set<TrainedOn> remarked_{};
  std::vector<std::string> remarks_{};
};

/// DIR/RUN/ is a run; DIR/failures/RUN.txt the error of one that failed; DIR/sweep.json what every start of the sweep
/// has in common; DIR/slurm.sbatch, where it is, trains the runs by Slurm, with logs in DIR/slurm/.
class SweepFolder {
 public:
  /// Makes the folder where it is missing, and locks it until the object goes. `threads` compute threads a run hold for
  /// the sweep from its first start on. Throws RunError where the folder holds something else than a sweep, another
  /// process works on it, or it was begun with other threads (`threads` 0 takes the recorded ones).
  SweepFolder(std::filesystem::path path, int64_t threads);

  /// The same for reading alone: makes and locks nothing.
  static SweepFolder look(std::filesystem::path path, int64_t threads);

  const std::filesystem::path& path() const { return path_; }
  int64_t threads() const { return threads_; }

  /// Gives every point its folder. Runs that are there are found by what their configs resolve to, so that an edited
  /// grid finds those that it still has; a point whose name another run has taken gets one with a digest. Returns how
  /// many runs belong to no point; those whose configs cannot be read are among them, and a warning names them.
  int64_t find_runs(const std::vector<SweepPoint>& points, const config::Schema& schema);

  /// The lock's descriptor, which the runs inherit, so that they hold the lock until they end; -1 without a lock.
  int lock_descriptor() const { return lock_ ? lock_->descriptor() : -1; }

  std::filesystem::path run_of(const SweepPoint& point) const;
  PointStatus status_of(const SweepPoint& point) const;
  /// How many epochs a run has behind it; 0 where there is no run.
  int64_t epochs_of(const SweepPoint& point) const;

  std::string failure_of(const SweepPoint& point) const;
  void record_failure(const SweepPoint& point, const std::string& error) const;
  void forget_failure(const SweepPoint& point) const;

  std::filesystem::path slurm_script() const;
  std::filesystem::path slurm_logs() const;

 private:
  SweepFolder() = default;
  void check_record();
  std::filesystem::path failure_file(const SweepPoint& point) const;

  std::filesystem::path path_;
  std::optional<FileLock> lock_;
  int64_t threads_ = 0;
  std::map<std::string, std::filesystem::path> runs_;  // by identity
};

}  // namespace settrain
