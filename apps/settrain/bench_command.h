// The subcommands of `settrain bench`.
#pragma once

#include <cstdint>
#include <string>

#include "apps/settrain/command_line.h"
#include "src/core/progress_bar.h"

namespace settrain {

struct TrainBench {
  std::string model;
  int64_t batch = 0, size = 0, classes = 0;  // 0: not given
  int64_t rounds = 5, steps = 20, warm_up = 3, processes = 1, beside = 0;
  bool json = false;
};

/// The progress at the start of a round.
inline Progress round_progress(const char* stage, int64_t round, int64_t rounds, int64_t images_a_round) {
  return {.stage = stage, .done = round * images_a_round, .total = rounds * images_a_round, .after = 0, .figures = ""};
}

/// `bench train --processes`: the same training in several processes and in one, in turns.
int bench_processes(const CommandLine& line, const TrainBench& bench, const config::Config& config);

void add_bench_inference_command(CLI::App& bench, CommandLine& line);
void add_bench_loader_command(CLI::App& bench, CommandLine& line);
void add_bench_losses_command(CLI::App& bench, CommandLine& line);
void add_bench_metrics_command(CLI::App& bench, CommandLine& line);
void add_bench_places_command(CLI::App& bench, CommandLine& line);
void add_bench_sets_command(CLI::App& bench, CommandLine& line);

}  // namespace settrain
