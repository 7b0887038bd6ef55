#include "src/run_folder/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "src/core/text.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMarker = ".settrain-run";
constexpr std::array<std::string_view, 11> kFiles{"config.yaml",
                                                  "provenance.json",
                                                  "class_counts.csv",
                                                  "data_files.txt.gz",
                                                  "log.txt",
                                                  "metrics.jsonl",
                                                  "metrics.csv",
                                                  "results.json",
                                                  "results.txt",
                                                  "report.html",
                                                  "events.out.tfevents.settrain"};

// Without "." and "..", and without a slash at the end.
fs::path tidy(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error) throw read_error("list", folder, error.value());
  std::sort(entries.begin(), entries.end());
  return entries;
}

// The marker may be lost where somebody copied a run without its hidden files.
bool is_run(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kMarker, ignored) ||
         (fs::exists(folder / "config.yaml", ignored) && fs::exists(folder / "provenance.json", ignored));
}

// The name of a file, and "NAME" for ".NAME.tmp-123", left by a process that was killed while it wrote NAME.
std::string final_name(const fs::path& file) {
  const std::string name = file.filename().string();
  const size_t suffix = name.rfind(".tmp-");
  if (!name.starts_with('.') || suffix == std::string::npos) return name;
  if (name.find_first_not_of("0123456789", suffix + 5) != std::string::npos) return name;
  return name.substr(1, suffix - 1);
}

bool is_made_by_a_run(const fs::path& file) {
  const std::string name = final_name(file);
  const bool is_calibration =
      (name.starts_with("rules-") || name.starts_with("calibration-")) && name.ends_with(".json");
  return is_calibration || std::find(kFiles.begin(), kFiles.end(), name) != kFiles.end();
}

bool is_checkpoint_of_a_run(const fs::path& file) {
  const std::string name = final_name(file);
  return name == "last.safetensors" || (name.starts_with("best-") && name.ends_with(".safetensors"));
}

bool is_left_half_written(const fs::path& file) {
  return final_name(file) != file.filename() && (is_made_by_a_run(file) || is_checkpoint_of_a_run(file));
}

void remove_file(const fs::path& file) {
  std::error_code error;
  if (!fs::remove(file, error) && error) throw file_error("remove", file, error.value());
}

void remove_files(const fs::path& folder, bool (*chosen)(const fs::path&)) {
  for (const fs::path& file : entries_of(folder)) {
    if (chosen(file)) remove_file(file);
  }
}

// A run that was stopped before its config was recorded.
bool is_blank(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / "config.yaml", ignored) || fs::exists(folder / "metrics.jsonl", ignored)) return false;
  if (!fs::is_directory(folder / "checkpoints", ignored)) return true;
  const std::vector<fs::path> entries = entries_of(folder / "checkpoints");
  return std::none_of(entries.begin(), entries.end(), [](const fs::path& entry) {
    return is_checkpoint_of_a_run(entry) && !is_left_half_written(entry);
  });
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw file_error("create", folder, error.value());
}

// ", did you mean 'runs/quickstart'?", "; there is a run inside it: 'runs/a'", or an empty text.
std::string hint_for(const fs::path& path) {
  std::error_code ignored;
  // A file inside a run, such as its config or a checkpoint.
  for (fs::path parent = path.parent_path(); parent.has_filename(); parent = parent.parent_path()) {
    if (is_run(parent)) return ", did you mean '" + parent.string() + "'?";
  }
  const auto runs_in = [&](const fs::path& folder) {
    std::vector<std::string> runs;
    if (!fs::is_directory(folder, ignored)) return runs;
    for (const fs::path& entry : entries_of(folder)) {
      if (is_run(entry)) runs.push_back(entry.filename().string());
    }
    return runs;
  };
  if (const std::vector<std::string> inside = runs_in(path); !inside.empty()) {
    std::string text = inside.size() == 1 ? "; there is a run inside it: " : "; there are runs inside it, such as ";
    return text + "'" + (path / inside.front()).string() + "'";
  }
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  return did_you_mean(path.filename().string(), runs_in(parent), (path.parent_path() / "").string());
}

}  // namespace

RunFolder RunFolder::create(const fs::path& given, bool overwrite) {
  const fs::path path = tidy(given);
  make_folder(path);
  check_not_foreign(path);
  FileLock lock(path / kMarker);
  // This check comes under the lock, since another process may have come first.
  if (!is_blank(path) && !overwrite) {
    throw RunError(fmt::format(
        "'{0}' already holds a run; go on with it by --resume {0}, replace it by --overwrite, or choose another run.dir",
        path.string()));
  }
  std::error_code ignored;
  if (fs::is_directory(path / "checkpoints", ignored)) remove_files(path / "checkpoints", is_checkpoint_of_a_run);
  remove_files(path, is_made_by_a_run);
  make_folder(path / "checkpoints");
  return RunFolder(path, std::move(lock));
}

RunFolder RunFolder::open_existing(const fs::path& given) {
  const fs::path path = tidy(given);
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    const char* problem = fs::exists(path, ignored) ? "' is a file, not a run's folder" : "' does not exist";
    throw RunError("'" + path.string() + problem + hint_for(path));
  }
  if (!is_run(path)) {
    throw RunError("'" + path.string() + "' is not a run's folder: it has no config.yaml" + hint_for(path));
  }
  if (!fs::exists(path / "config.yaml", ignored)) {
    throw RunError("the run in '" + path.string() +
                   "' has no config.yaml: either it ended before it began, and can be started again, or the file was "
                   "removed, and the metadata 'config' of its checkpoints hold a copy");
  }
  return RunFolder(path);
}

RunFolder RunFolder::open_to_resume(const fs::path& given) {
  RunFolder run = open_existing(given);
  run.lock_.emplace(run.path_ / kMarker);
  make_folder(run.path_ / "checkpoints");
  remove_files(run.path_ / "checkpoints", is_left_half_written);
  remove_files(run.path_, is_left_half_written);
  return run;
}

void RunFolder::check_not_foreign(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored) || is_there(path)) return;
  const std::vector<fs::path> entries = entries_of(path);
  if (entries.empty()) return;
  throw RunError("'" + path.string() + "' is not a run's folder and not empty (it has '" +
                 entries.front().filename().string() +
                 "'), so nothing is written or removed there; choose another run.dir");
}

fs::path RunFolder::of_checkpoint(const fs::path& file) {
  const fs::path folder = fs::absolute(file).parent_path();
  return folder.filename() == "checkpoints" && is_there(folder.parent_path()) ? folder.parent_path() : fs::path();
}

bool RunFolder::is_there(const fs::path& path) {
  return is_run(tidy(path));
}

bool RunFolder::is_begun(const fs::path& path) {
  std::error_code ignored;
  return is_there(path) && fs::exists(path / "config.yaml", ignored);
}

bool RunFolder::has_results(const fs::path& path) {
  std::ifstream stream(path / "results.json");
  const auto results = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  return results.is_array() && !results.empty();
}

void RunFolder::remove_results() const {
  for (const fs::path& file : {results_json(), results_text()}) remove_file(file);
}

RunFolder::RunFolder(fs::path path, std::optional<FileLock> lock) : path_(std::move(path)), lock_(std::move(lock)) {}

fs::path RunFolder::selected_checkpoint(const std::string& select) const {
  if (select == kLast) return last_checkpoint();
  return checkpoint_file(checkpoint_name(select));
}

std::string RunFolder::checkpoint_name(const std::string& select) {
  if (select == kLast) return kLast;
  std::string name = select;
  const auto is_awkward = [](char c) { return std::string_view("/:()\\ ").find(c) != std::string_view::npos; };
  std::replace_if(name.begin(), name.end(), is_awkward, '-');
  return "best-" + name;
}

fs::path RunFolder::checkpoint(const std::string& name) const {
  const fs::path file = checkpoint_file(name);
  std::error_code ignored;
  if (name.find('/') == std::string::npos && fs::is_regular_file(file, ignored)) return file;
  std::vector<std::string> known;
  for (const fs::path& entry : entries_of(path_ / "checkpoints")) {
    if (is_checkpoint_of_a_run(entry)) known.push_back(entry.stem().string());
  }
  throw RunError(fmt::format("'{}' has no checkpoint '{}'; it has {}", path_.string(), name,
                             known.empty() ? "none" : join(known, ", ")));
}

}  // namespace settrain
