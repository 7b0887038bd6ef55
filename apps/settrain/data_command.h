// The subcommands of `settrain data`.
#pragma once

#include "apps/settrain/command_line.h"

namespace settrain {

void add_data_verify_command(CLI::App& data, CommandLine& line);
void add_data_stats_command(CLI::App& data, CommandLine& line);
void add_data_fetch_command(CLI::App& data, CommandLine& line);
void add_data_split_command(CLI::App& data, CommandLine& line);

}  // namespace settrain
