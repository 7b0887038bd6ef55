#include <filesystem>
#include <fstream>
#include <iostream>

#include "apps/settrain/sweep_run.h"
#include "src/core/log.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

struct GridArguments {
  std::string grid, preset;
  SweepArguments sweep;
};

int sweep_grid(const CommandLine& line, const GridArguments& arguments) {
  const fs::path file = find_config(arguments.grid);
  const std::string title = file.stem().string() + (arguments.preset.empty() ? "" : "-" + arguments.preset);
  const Sweep made =
      open_sweep(line, arguments.sweep, read_grid(file, arguments.preset), title, fs::path("sweeps") / title);
  check_selection(line, made);
  if (arguments.sweep.dry_run) {
    print_plan(line, made, arguments.sweep);
    return kSuccess;
  }
  if (arguments.sweep.slurm) {
    print_slurm_array(line, made, arguments.sweep);
    return kSuccess;
  }
  const int64_t unfinished = carry_out(line, made, arguments.sweep);
  const fs::path table = made.folder.path() / "sweep.md";
  std::cout << std::ifstream(table).rdbuf();
  log::info("[sweep] the tables are " + table.string() + " and sweep.csv beside it");
  return unfinished == 0 ? kSuccess : kFailed;
}

}  // namespace

void add_sweep_command(CLI::App& app, CommandLine& line) {
  const auto [command, arguments] = add_subcommand<GridArguments>(
      app, line, "sweep", sweep_grid, "Trains every point of a grid and selects the best on validation");
  command
      ->add_option("grid", arguments->grid,
                   "The grid's YAML file, or one of the shipped ones: sweeps/epsilon_draws_margin")
      ->required();
  command->add_option("--preset", arguments->preset,
                      "What the file has under this name in `presets` is put over the rest");
  add_sweep_options(*command, line, arguments->sweep,
                    "The sweep's folder; sweeps/GRID or sweeps/GRID-PRESET without it");
}

}  // namespace settrain
