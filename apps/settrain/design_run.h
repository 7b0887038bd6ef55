// What `settrain table` and `settrain figure` have in common: both show what the runs of a design came to.
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
  std::vector<std::string> runs;  // of --collect
  SweepArguments sweep;
};

/// Which of a design's presets is meant.
void add_preset_option(CLI::App& command, std::string& preset);

/// --preset, --collect and the options of sweeps. `what`: "table", "figure"; `default_folder`: "tables/".
void add_design_options(CLI::App& command, CommandLine& line, DesignArguments& arguments, const std::string& what,
                        const std::string& default_folder);

/// Where the design's results and runs are: --dir, or a folder of the design's name in `parent`.
std::filesystem::path folder_of(const RunDesign& design, const DesignArguments& arguments,
                                const std::filesystem::path& parent);

/// Shows what finished runs came to; the texts say which have failed.
using ShowRuns =
    std::function<void(const std::vector<std::filesystem::path>& runs, const std::vector<std::string>& failures)>;

/// Trains what the cells, which check_cells() has passed, need, or goes on, in `folder`, and shows it; also where a
/// signal stops it. With --dry-run only says what is to come. Returns the exit code. Throws DataError where data or
/// weights are missing.
int train_design(const CommandLine& line, const DesignArguments& arguments, const RunDesign& design,
                 const std::vector<WantedCell>& cells, const std::filesystem::path& folder, const ShowRuns& show);

}  // namespace settrain
