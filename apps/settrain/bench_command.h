// The subcommands of `settrain bench`.
#pragma once

#include <cstdint>
#include <string>

#include "apps/settrain/command_line.h"

namespace settrain {

struct TrainBench {
  std::string model;
  int64_t batch = 0, size = 0, classes = 0;  // 0: not given
  int64_t rounds = 5, steps = 20, warm_up = 3, processes = 1, beside = 0;
  bool json = false;
};

/// `bench train --processes`: the same training in several processes, beside one, in turns.
int bench_processes(const CommandLine& line, const TrainBench& bench, const config::Config& config);

void add_bench_loader_command(CLI::App& bench, CommandLine& line);
void add_bench_losses_command(CLI::App& bench, CommandLine& line);
void add_bench_metrics_command(CLI::App& bench, CommandLine& line);
void add_bench_sets_command(CLI::App& bench, CommandLine& line);

}  // namespace settrain
