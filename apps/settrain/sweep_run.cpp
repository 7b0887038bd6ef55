#include "apps/settrain/sweep_run.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <sstream>
#include <thread>

#include "apps/settrain/design_cost.h"
#include "src/config/load.h"
#include "src/config/value.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/measure/cost/dry_run.h"
#include "src/studies/sweep/slurm_script.h"
#include "src/train/experiment_schema.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// Compute threads of each run of a new sweep: the cores divided by the jobs, or the cores of a Slurm task.
int64_t threads_for(const SweepArguments& arguments, const fs::path& folder) {
  if (arguments.threads > 0 || fs::exists(folder / "sweep.json")) return arguments.threads;
  if (arguments.slurm) return cpus_per_task(split_slurm_options(*arguments.slurm));
  return std::max<int64_t>(1, static_cast<int64_t>(std::thread::hardware_concurrency()) / arguments.jobs);
}

// The GPUs, one for each job: those that this process sees, or the one that --device names. Throws ConfigError where
// there are fewer than jobs.
std::vector<std::string> gpus_for(const at::Device& device, const std::string& name, int64_t jobs) {
  if (!device.is_cuda()) return {};
  std::vector<std::string> gpus;
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::istringstream names(visible ? visible : "");
  for (std::string gpu; std::getline(names, gpu, ',');) gpus.push_back(gpu);
  if (!visible) {
    for (int64_t i = 0; i < at::detail::getCUDAHooks().deviceCount(); ++i) gpus.push_back(std::to_string(i));
  }
  if (name.starts_with("cuda:")) gpus = {gpus.at(static_cast<size_t>(device.index()))};
  if (jobs > static_cast<int64_t>(gpus.size())) {
    throw ConfigError(fmt::format("--jobs {}: there are {} GPUs, and each run takes one", jobs, gpus.size()));
  }
  return gpus;
}

// Prints the time and disk space that the pending runs will take, as measured on the first of them.
void print_costs(const CommandLine& line, const Sweep& sweep, const std::vector<SweepRow>& rows, int64_t jobs) {
  const auto first =
      std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row.status == PointStatus::kPending; });
  if (first == rows.end()) return;
  const SweepPoint& point = *first->point;
  Experiment run = make_experiment(line.registries,
                                   config::load(experiment_schema(line.registries), sweep.grid.base, point.overrides),
                                   find_device(line.device), FirstWeights::kPretrained);
  ProgressBar bar;
  const DryRun cost = dry_run(run, bar);
  if (!cost.divergence.empty()) log::warning(fmt::format("[sweep] {}: {}", point.name, cost.divergence));
  const auto to_come = static_cast<double>(count(rows, PointStatus::kPending));
  std::cout << fmt::format(
      "to come: {} runs of {} and {} each, as measured on {}; {} in all with {} at a time, {} on disk\n",
      count(rows, PointStatus::kPending), format_duration((cost.train_s + cost.eval_s)),
      format_bytes(static_cast<uint64_t>(cost.disk_bytes)), point.name,
      format_duration((cost.train_s + cost.eval_s) * to_come / static_cast<double>(jobs)), jobs,
      format_bytes(static_cast<uint64_t>(static_cast<double>(cost.disk_bytes) * to_come)));
}

void warn_of_failures(const Sweep& sweep, const SweepArguments& arguments) {
  for (const SweepRow& row : rows_of(sweep)) {
    if (row.status == PointStatus::kFailed && !arguments.retry_failed) {
      log::warning(
          fmt::format("[sweep] {} failed before: {} (--retry-failed tries it again)", row.point->name, row.failure));
    }
  }
}

// Collects the runs that a batch script trains. This process must not train them too, or two processes would write one
// run.
int64_t collect(const Sweep& sweep) {
  const int64_t unfinished = collect_sweep(sweep);
  if (unfinished > 0) {
    log::warning(fmt::format(
        "[sweep] {} runs are not finished; the elements of {} train them, with logs in {}. Submitted again, they go on; "
        "--slurm writes the script anew, for these runs alone; where it is removed, the sweep trains them itself",
        unfinished, sweep.folder.slurm_script().string(), sweep.folder.slurm_logs().string()));
  }
  return unfinished;
}

}  // namespace

void add_sweep_options(CLI::App& command, CommandLine& line, SweepArguments& arguments,
                       const std::string& folder_help) {
  command.add_option("--dir", arguments.folder, folder_help);
  CLI::Option* jobs =
      command.add_option("--jobs", arguments.jobs, "Runs at a time; on GPUs one each")->check(CLI::Range(1, 1024));
  add_integer(command, "--threads", arguments.threads, 1, 1024,
              "Compute threads a run, on which results depend; held to from the first start on. Without it the "
              "cores divided by --jobs, with --slurm those of a task");
  CLI::Option* dry_run =
      command.add_flag("--dry-run", arguments.dry_run, "Lists the runs, says what they will take, and trains nothing");
  command.add_flag("--retry-failed", arguments.retry_failed, "Tries runs again that have failed")->excludes(dry_run);
  CLI::Option* fail_fast =
      command.add_flag("--fail-fast", arguments.fail_fast, "Stops at the first run that fails")->excludes(dry_run);
  command
      .add_option(
          "--slurm", arguments.slurm,
          "Trains nothing: writes DIR/slurm.sbatch, which does, an element of a Slurm array for each run that is "
          "not finished. Takes options of sbatch: '--time=2:00:00 --cpus-per-task=8'; the same command without "
          "--slurm collects")
      ->option_text("OPTIONS")
      ->excludes(jobs, dry_run, fail_fast);
  add_device_option(command, line);
}

Sweep open_sweep(const CommandLine& line, const SweepArguments& arguments, Grid grid, const std::string& title,
                 const std::string& folder) {
  const fs::path path = arguments.folder.empty() ? folder : arguments.folder;
  const config::Schema schema = experiment_schema(line.registries);
  // Everything is checked before the folder is made.
  if (arguments.slurm) split_slurm_options(*arguments.slurm);
  int64_t repeated = 0;
  make_runs(grid, schema, 1, repeated);
  const int64_t threads = threads_for(arguments, path);
  SweepFolder made = arguments.dry_run ? SweepFolder::look(path, threads) : SweepFolder(path, threads);
  std::vector<SweepPoint> points = make_runs(grid, schema, made.threads(), repeated);
  const int64_t others = made.find_runs(points, schema);
  Sweep sweep{std::move(grid), title, std::move(points), std::move(made)};

  const std::vector<SweepRow> rows = rows_of(sweep);
  log::info(
      fmt::format("[sweep] {}: {} runs: {} finished, {} started, {} failed, {} pending; compute threads of each: {}{}",
                  path.string(), rows.size(), count(rows, PointStatus::kFinished), count(rows, PointStatus::kStarted),
                  count(rows, PointStatus::kFailed), count(rows, PointStatus::kPending), sweep.folder.threads(),
                  arguments.slurm ? "" : fmt::format(", {} at a time", arguments.jobs)));
  if (repeated > 0) {
    const std::vector<std::string> keys = keys_without_effect(sweep.grid, schema);
    const std::string text = fmt::format("[sweep] {} further points come to the same configs as others", repeated);
    if (keys.empty()) {
      log::info(text);
    } else {
      log::warning(
          fmt::format("{} and are left out: runs that differ only in {} count as one. To compare data sets, make "
                      "a sweep for each",
                      text, fmt::join(keys, ", ")));
    }
  }
  if (others > 0)
    log::info(fmt::format("[sweep] {} runs in the folder belong to no point of this grid, and stay", others));
  return sweep;
}

void check_selection(const CommandLine& line, const Sweep& sweep) {
  const config::Schema schema = experiment_schema(line.registries);
  std::set<std::string> checked;
  for (const SweepRow& row : rows_of(sweep)) {
    if (row.status != PointStatus::kPending) continue;
    const config::Config config = config::load(schema, sweep.grid.base, row.point->overrides);
    // A point that differs in nothing that is asked here is not loaded again.
    std::string asked;
    for (const config::Entry& entry : config.entries()) {
      const bool is_asked = entry.path.starts_with("data.") || entry.path.starts_with("eval.") || entry.path == "seed";
      if (is_asked && !entry.key.is_free) asked += config::yaml_value(entry.key, entry.value) + "\n";
    }
    if (!checked.insert(asked).second) continue;
    std::string problem;
    try {
      problem = why_no_value(line.registries, config, sweep.grid.select);
    } catch (const Error&) {  // the run reports it, and the others go on
    }
    if (!problem.empty()) throw ConfigError(fmt::format("point {}: {}", row.point->name, problem));
  }
}

void print_plan(const CommandLine& line, const Sweep& sweep, const SweepArguments& arguments) {
  const std::vector<SweepRow> rows = rows_of(sweep);
  for (const SweepRow& row : rows) std::cout << fmt::format("{:<9} {}\n", name_of(row.status), row.point->name);
  DesignCost files;
  for (const SweepRow& row : rows) {
    if (row.status != PointStatus::kPending) continue;
    files.add_files(config::load(experiment_schema(line.registries), sweep.grid.base, row.point->overrides));
  }
  if (files.data.empty()) return;  // no run is to come
  std::cout << files.needs_lines();
  if (files.missing.empty()) {
    print_costs(line, sweep, rows, arguments.jobs);
  } else {
    std::cout << fmt::format("to come: {} runs; what they take is measured where nothing is missing\n",
                             count(rows, PointStatus::kPending));
  }
}

void print_slurm_array(const CommandLine& line, const Sweep& sweep, const SweepArguments& arguments) {
  warn_of_failures(sweep, arguments);
  const std::vector<std::string> options = split_slurm_options(*arguments.slurm);
  const std::vector<int64_t> runs = runs_to_come(sweep, arguments.retry_failed);
  if (runs.empty()) {
    log::info("[sweep] no run is to come, so no script is written");
    return;
  }
  write_slurm_array(sweep, runs, options, line.device);
  log::info(fmt::format("[sweep] an element for each of {} runs, with logs in {}; submit them by", runs.size(),
                        sweep.folder.slurm_logs().string()));
  std::cout << fmt::format("sbatch {}\n", shell_word(sweep.folder.slurm_script().string())) << std::flush;
  log::info("[sweep] then the same command without --slurm collects what they came to, at any time");
}

int64_t carry_out(const CommandLine& line, const Sweep& sweep, const SweepArguments& arguments) {
  warn_of_failures(sweep, arguments);
  if (fs::exists(sweep.folder.slurm_script())) return collect(sweep);
  catch_interrupts();
  const at::Device device = find_device(line.device);
  try {
    // This path stays that of the running program, also where its file is replaced meanwhile.
    return run_sweep(sweep, {.program = fmt::format("/proc/{}/exe", ::getpid()),
                             .device = device.is_cuda() ? "cuda" : "cpu",
                             .gpus = gpus_for(device, line.device, arguments.jobs),
                             .jobs = arguments.jobs,
                             .retry_failed = arguments.retry_failed,
                             .fail_fast = arguments.fail_fast});
  } catch (const Interrupted&) {
    log::warning("[sweep] stopped by a signal; the same command goes on");
    throw;
  }
}

}  // namespace settrain
