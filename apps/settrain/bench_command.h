// The subcommands of `settrain bench`.
#pragma once

#include "apps/settrain/command_line.h"

namespace settrain {

void add_bench_loader_command(CLI::App& bench, CommandLine& line);
void add_bench_losses_command(CLI::App& bench, CommandLine& line);
void add_bench_metrics_command(CLI::App& bench, CommandLine& line);
void add_bench_sets_command(CLI::App& bench, CommandLine& line);

}  // namespace settrain
