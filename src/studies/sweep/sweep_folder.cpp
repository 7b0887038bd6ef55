#include "src/studies/sweep/sweep_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "src/config/load.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/run_folder/metrics_log.h"
#include "src/run_folder/run_folder.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kMark = ".settrain-sweep";
constexpr const char* kRecord = "sweep.json";
constexpr const char* kKind = "settrain sweep";
constexpr int kFormatVersion = 1;

std::string read(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

ordered_json read_json(const fs::path& file) {
  try {
    return ordered_json::parse(read(file));
  } catch (const ordered_json::exception& problem) {
    throw RunError(fmt::format("'{}': {}", file.string(), problem.what()));
  }
}

// Whether the run measured the metric in its epochs, and none gave it a value: nothing was chosen by it.
bool never_had_value(const RunFolder& run, const std::string& metric) {
  bool is_measured = false;
  for (const MetricsRow& row : read_metrics(run.metrics_jsonl(), 0)) {
    for (const auto& [name, value] : row.values) {
      if (name != metric) continue;
      if (!std::isnan(value)) return false;
      is_measured = true;
    }
  }
  return is_measured;
}

}  // namespace

std::string_view name_of(PointStatus status) {
  constexpr std::string_view kNames[] = {"pending", "started", "finished", "failed"};
  return kNames[static_cast<size_t>(status)];
}

double PointResult::metric(const std::string& name) const {
  const auto found =
      std::find_if(metrics.begin(), metrics.end(), [&](const auto& entry) { return entry.first == name; });
  return found == metrics.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

PointResult read_result(const fs::path& folder, const std::string& select) {
  const RunFolder run = RunFolder::open_existing(folder);
  const std::string wanted = run.selected_checkpoint(select).stem().string();
  const ordered_json results = read_json(run.results_json());
  try {
    auto chosen = std::find_if(results.begin(), results.end(),
                               [&](const ordered_json& entry) { return entry.at("checkpoint") == wanted; });
    if (chosen == results.end()) {  // after no epoch there is nothing to choose from
      chosen = std::find_if(results.begin(), results.end(), [](const ordered_json& entry) {
        return entry.at("checkpoint") == "last" && entry.at("epoch") == 0;
      });
    }
    const bool chose_nothing = chosen == results.end() && !results.empty() && never_had_value(run, select);
    if (chose_nothing) {
      chosen = std::find_if(results.begin(), results.end(),
                            [](const ordered_json& entry) { return entry.at("checkpoint") == RunFolder::kLast; });
      if (chosen == results.end()) chosen = results.begin();
    }
    if (chosen == results.end()) {
      throw RunError(fmt::format("'{}' has no results of {}", run.results_json().string(), wanted));
    }
    PointResult result{.checkpoint = chosen->at("checkpoint"), .epoch = chosen->at("epoch"), .metrics = {}};
    result.chose_nothing = chose_nothing;
    for (const auto& [split, metrics] : chosen->at("metrics").items()) {
      for (const auto& [name, value] : metrics.items()) {
        const double number = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
        result.metrics.emplace_back(split + "/" + name, number);
      }
    }
    const ordered_json sizes = chosen->value("set_sizes", ordered_json::object());
    for (const auto& [split, histograms] : sizes.items()) {
      for (const auto& [name, counts] : histograms.items()) {
        result.set_sizes.emplace_back(split + "/" + name, counts.get<std::vector<int64_t>>());
      }
    }
    const ordered_json digests = chosen->value("digests", ordered_json::object());
    for (const auto& [split, digest] : digests.items()) {
      result.digests[split] = digest.get<std::string>();
    }
    return result;
  } catch (const ordered_json::exception& problem) {
    throw RunError(fmt::format("'{}': {}", run.results_json().string(), problem.what()));
  }
}

std::string chose_nothing_text(const std::string& select, const PointResult& result) {
  return fmt::format("{} has no value on this data, so nothing is chosen by it; the results are of {}", select,
                     result.checkpoint == RunFolder::kLast ? "the last weights" : result.checkpoint);
}

void ImageComparison::add(const fs::path& run, const PointResult& result) {
  const auto train = result.digests.find("train");
  if (train == result.digests.end()) return;
  for (const auto& [split, digest] : result.digests) {
    const TrainedOn key(train->second, split);
    const auto& [first_digest, first_run] = first_.emplace(key, std::pair(digest, run)).first->second;
    if (first_digest == digest || !remarked_.insert(key).second) continue;
    remarks_.push_back(
        fmt::format("{} and {}: the {} images were not the same, so their results on them do not compare",
                    first_run.string(), run.string(), split));
  }
}

SweepFolder::SweepFolder(fs::path path, int64_t threads) : path_(std::move(path)), threads_(threads) {
  std::error_code error;
  if (!fs::exists(path_ / kMark) && !fs::exists(path_ / kRecord) && fs::exists(path_) &&
      (!fs::is_directory(path_) || !fs::is_empty(path_, error))) {
    throw RunError(fmt::format("'{}' is there and holds no sweep; --dir names another folder", path_.string()));
  }
  fs::create_directories(path_, error);
  if (error) throw RunError(fmt::format("cannot make the folder '{}': {}", path_.string(), error.message()));
  lock_.emplace(path_ / kMark);
  check_record();
  if (fs::exists(path_ / kRecord)) return;
  const ordered_json record{{"kind", kKind}, {"format_version", kFormatVersion}, {"threads", threads_}};
  write_file_atomically(path_ / kRecord, record.dump(1) + "\n");
}

SweepFolder SweepFolder::look(fs::path path, int64_t threads) {
  SweepFolder folder;
  folder.path_ = std::move(path);
  folder.threads_ = threads;
  folder.check_record();
  return folder;
}

// Takes the number of threads from the record, where there is one.
void SweepFolder::check_record() {
  const fs::path file = path_ / kRecord;
  if (!fs::exists(file)) {
    threads_ = std::max<int64_t>(threads_, 1);
    return;
  }
  ordered_json record = read_json(file);
  if (!record.is_object() || record.value("kind", ordered_json()) != kKind ||
      record.value("format_version", ordered_json()) != kFormatVersion || !record["threads"].is_number_integer()) {
    throw RunError(fmt::format("'{}' is no record of a sweep that this version of settrain reads", file.string()));
  }
  const auto recorded = record["threads"].get<int64_t>();
  if (threads_ != 0 && threads_ != recorded) {
    throw RunError(
        fmt::format("'{}' was begun with {} compute threads a run, on which its numbers depend, not {}; --dir "
                    "begins another sweep",
                    path_.string(), recorded, threads_));
  }
  threads_ = recorded;
}

int64_t SweepFolder::find_runs(const std::vector<SweepPoint>& points, const config::Schema& schema) {
  std::map<std::string, fs::path> by_identity;
  std::set<std::string> taken;
  int64_t others = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path_, error)) {
    if (!RunFolder::is_begun(entry.path())) continue;
    try {
      by_identity.emplace(identity_of(load_asked(schema, entry.path())), entry.path());
    } catch (const ConfigError& problem) {
      log::warning(fmt::format("[sweep] the run '{}' is left alone: {}", entry.path().string(), problem.what()));
    }
    taken.insert(entry.path().filename().string());
    ++others;
  }
  for (const SweepPoint& point : points) {
    const auto found = by_identity.find(point.identity);
    if (found != by_identity.end()) {
      runs_[point.identity] = found->second;
      --others;
    } else {
      runs_[point.identity] = path_ / (taken.contains(point.name) ? with_digest(point) : point.name);
    }
  }
  return others;
}

fs::path SweepFolder::run_of(const SweepPoint& point) const {
  return runs_.at(point.identity);
}

PointStatus SweepFolder::status_of(const SweepPoint& point) const {
  const fs::path run = run_of(point);
  if (RunFolder::is_begun(run) && RunFolder::has_results(run)) return PointStatus::kFinished;
  if (fs::exists(failure_file(point))) return PointStatus::kFailed;
  return RunFolder::is_begun(run) ? PointStatus::kStarted : PointStatus::kPending;
}

int64_t SweepFolder::epochs_of(const SweepPoint& point) const {
  const std::string rows = read(run_of(point) / "metrics.jsonl");
  return std::count(rows.begin(), rows.end(), '\n');
}

std::string SweepFolder::failure_of(const SweepPoint& point) const {
  return read(failure_file(point));
}

void SweepFolder::record_failure(const SweepPoint& point, const std::string& error) const {
  std::error_code ignored;  // the file that cannot be written then says why
  fs::create_directories(path_ / "failures", ignored);
  write_file_atomically(failure_file(point), error + "\n");
}

void SweepFolder::forget_failure(const SweepPoint& point) const {
  std::error_code ignored;
  fs::remove(failure_file(point), ignored);
}

fs::path SweepFolder::slurm_script() const {
  return path_ / "slurm.sbatch";
}

fs::path SweepFolder::slurm_logs() const {
  return path_ / "slurm";
}

fs::path SweepFolder::failure_file(const SweepPoint& point) const {
  return path_ / "failures" / (run_of(point).filename().string() + ".txt");
}

}  // namespace settrain
