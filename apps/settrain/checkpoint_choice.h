// Which checkpoint of a run a subcommand takes, where it takes one.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "apps/settrain/command_line.h"
#include "src/run_folder/run_folder.h"

namespace settrain {

struct CheckpointChoice {
  std::string metric, checkpoint;  // --metric, --checkpoint

  void add_options(CLI::App& command);
};

/// The checkpoint that is asked for; without a wish the one that stands for the run. Throws ConfigError where several
/// do, and RunError where it is not there.
std::filesystem::path chosen_checkpoint(const CommandLine& line, const CheckpointChoice& choice,
                                        const RunFolder& folder);

}  // namespace settrain
