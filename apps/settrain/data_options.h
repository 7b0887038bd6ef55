// Options that the subcommands of `settrain data` share.
#pragma once

#include <cstdint>

#include "apps/settrain/command_line.h"
#include "datasets/load_data.h"

namespace settrain {

/// CONFIG or --config CONFIG, one of them, and --set.
void add_data_config(CLI::App& command, CommandLine& line);

/// --workers: threads that read images; as many as there are cores.
void add_workers(CLI::App& command, int64_t& workers);

/// The data of the config that add_data_config() took.
LoadedData load_data(const CommandLine& line);

}  // namespace settrain
