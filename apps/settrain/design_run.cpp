#include "apps/settrain/design_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

#include "apps/settrain/design_cost.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/papers/design/cells.h"
#include "src/studies/compare/compared_run.h"
#include "src/train/experiment_schema.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// Prints the runs and their cost, which needs no data.
void print_design_plan(const CommandLine& line, const RunDesign& design, const std::vector<WantedCell>& cells,
                       const Sweep& sweep) {
  for (const SweepRow& row : rows_of(sweep)) {
    std::cout << fmt::format("{:<9} {}\n", name_of(row.status), row.point->name);
  }
  DesignCosts costs(line);
  const DesignCost cost = costs.count(design, cells);
  std::cout << cost.needs_lines();
  if (!cost.is_known) return;
  std::cout << std::flush;  // measuring takes a while
  ProgressBar bar;
  const double seconds = costs.measure_seconds(cost, bar);
  bar.hide();
  std::cout << fmt::format(
      "all {} runs one after the other: {}, from steps measured on random images; the loading of images is left out\n",
      cost.runs, format_duration(seconds));
}

int train_design(const CommandLine& line, const DesignArguments& arguments, const RunDesign& design,
                 const std::vector<WantedCell>& cells, const fs::path& folder, const ShowRuns& show) {
  const Sweep sweep = open_sweep(line, arguments.sweep, grid_of(design, cells), design.file_name(), folder);
  if (arguments.sweep.dry_run) {
    print_design_plan(line, design, cells, sweep);
    return kSuccess;
  }
  const std::vector<SweepRow> rows = rows_of(sweep);
  const bool is_done = std::all_of(rows.begin(), rows.end(), [&](const SweepRow& row) {
    return row.status == PointStatus::kFinished ||
           (row.status == PointStatus::kFailed && !arguments.sweep.retry_failed);
  });
  // Runs that a batch script trains are only collected.
  const bool trains = arguments.sweep.slurm || !fs::exists(sweep.folder.slurm_script());
  if (trains && !is_done) {
    const DesignCost cost = DesignCosts(line).count(design, cells);
    if (!cost.missing.empty()) {
      throw DataError(fmt::format("{} cannot be made here:\n  {}", design.name, fmt::join(cost.missing, "\n  ")));
    }
  }
  if (arguments.sweep.slurm) {
    print_slurm_array(line, sweep, arguments.sweep);
    return kSuccess;
  }
  const auto show_all = [&] {
    std::vector<fs::path> runs;
    std::vector<std::string> failures;
    for (const SweepRow& row : rows_of(sweep)) {
      if (row.status == PointStatus::kFinished) runs.push_back(sweep.folder.run_of(*row.point));
      if (row.status == PointStatus::kFailed) {
        failures.push_back(fmt::format("{} failed: {}", row.point->name, row.failure));
      }
    }
    show(runs, failures);
  };
  try {
    const int64_t unfinished = carry_out(line, sweep, arguments.sweep);
    show_all();
    return unfinished == 0 ? kSuccess : kFailed;
  } catch (const Interrupted&) {
    try {
      show_all();
    } catch (const Error& problem) {
      log::error(problem.what());
    }
    throw;
  }
}

// Whether the command was given a design's name; false for a subcommand. Throws CLI::ParseError for neither, and for a
// subcommand with options of the command itself, which the subcommand would ignore.
bool names_design(const CLI::App& command) {
  const bool has_subcommand = !command.get_subcommands().empty();
  for (const CLI::Option* option : command.get_options()) {
    if (has_subcommand && option->count() > 0) throw CLI::ExtrasError(std::vector<std::string>{option->get_name()});
  }
  if (!has_subcommand && command.get_option("name")->empty()) throw CLI::RequiredError("name");
  return !has_subcommand;
}

}  // namespace

void add_preset_option(CLI::App& command, std::string& preset) {
  command
      .add_option(
          "--preset", preset,
          "paper: the exact protocol; small: the same at a size for one GPU and minutes; smoke: to see that all "
          "of it works; or another that its file defines")
      ->capture_default_str();
}

void add_design_options(CLI::App& command, CommandLine& line, const std::string& what, const char* name_help,
                        const std::string& default_folder,
                        int (*make)(const CommandLine& line, const DesignArguments& arguments)) {
  const auto arguments = std::make_shared<DesignArguments>();
  command.add_option("name", arguments->name, name_help);
  add_preset_option(command, arguments->preset);
  add_sweep_options(command, line, arguments->sweep,
                    fmt::format("The {0}'s folder, with its runs; {1}NAME without it, and with --collect "
                                "{1}NAME-collected",
                                what, default_folder));
  CLI::Option* collect = command.add_option(
      "--collect", arguments->runs,
      fmt::format("Trains nothing: makes the {} from these runs, or those that these folders directly hold, whatever "
                  "their seeds",
                  what));
  for (const char* other : {"--dry-run", "--retry-failed", "--fail-fast", "--slurm"})
    command.get_option(other)->excludes(collect);
  command.callback([&command, &line, arguments, make] {
    if (names_design(command)) line.action = [&line, arguments, make] { return make(line, *arguments); };
  });
}

fs::path folder_of(const RunDesign& design, const DesignArguments& arguments, const fs::path& parent) {
  if (!arguments.sweep.folder.empty()) return arguments.sweep.folder;
  // Collected results have a folder of their own, so that the same design can still be trained.
  return parent / (design.file_name() + (arguments.collects() ? "-collected" : ""));
}

int make_design(const CommandLine& line, const DesignArguments& arguments, const RunDesign& design,
                const std::vector<WantedCell>& cells, const fs::path& folder, const ShowRuns& show) {
  check_cells(design, cells, experiment_schema(line.registries));
  if (!arguments.collects()) return train_design(line, arguments, design, cells, folder, show);
  show(find_runs(arguments.runs), {});
  return kSuccess;
}

}  // namespace settrain
