// Training and collecting the runs of a design, for `settrain table` and `settrain figure`.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "apps/settrain/command_line.h"
#include "apps/settrain/sweep_run.h"
#include "src/papers/design/run_design.h"

namespace settrain {

struct DesignArguments {
  std::string name, preset = "paper";
  std::vector<std::string> runs;  // --collect
  SweepArguments sweep;

  bool collects() const { return !runs.empty(); }
};

/// --preset
void add_preset_option(CLI::App& command, std::string& preset);

/// Gives the command its positional name, --preset, --collect and the options of sweeps. Where a name is given, the
/// action is make(line, arguments). `what`: "table", "figure"; `default_folder`: "tables/".
void add_design_options(CLI::App& command, CommandLine& line, const std::string& what, const char* name_help,
                        const std::string& default_folder,
                        int (*make)(const CommandLine& line, const DesignArguments& arguments));

/// The folder of the design's results and runs: --dir, or a folder with the design's name in `parent`.
std::filesystem::path folder_of(const RunDesign& design, const DesignArguments& arguments,
                                const std::filesystem::path& parent);

/// Shows the results of the finished runs; `failures` has a sentence for each failed run.
using ShowRuns =
    std::function<void(const std::vector<std::filesystem::path>& runs, const std::vector<std::string>& failures)>;

/// With --collect shows the results of these runs. Without it trains the runs that the cells need in `folder`, or goes
/// on with them, and shows the results, also after a signal. With --dry-run only prints the plan. Returns the exit
/// code. Throws what check_cells() throws, and DataError where data or weights are missing.
int make_design(const CommandLine& line, const DesignArguments& arguments, const RunDesign& design,
                const std::vector<WantedCell>& cells, const std::filesystem::path& folder, const ShowRuns& show);

}  // namespace settrain
