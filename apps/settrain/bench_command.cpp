#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "apps/settrain/command_line.h"
#include "src/core/interrupt.h"
#include "src/engine/throughput.h"

namespace settrain {
namespace {

struct BenchArguments {
  int64_t rounds = 5, steps = 20;
};

void print_row(const std::string& what, const StepTimes& times) {
  std::cout << fmt::format("{:<18} {:>10.1f} {:>12.2f}\n", what, times.images_per_second(), 1000 * times.mean());
}

// In turns, so that a busy machine slows both alike.
int bench_train(const CommandLine& line, const BenchArguments& arguments) {
  const at::Device device = find_device(line.device);
  Experiment run = make_experiment(line.registries, load_config(line), device);
  catch_interrupts();
  Throughput throughput(run);
  StepTimes warm_up, from_loader, cached;
  throughput.take_from_loader(3, 3, warm_up);

  std::vector<double> ratios;
  for (int64_t round = 0; round < arguments.rounds; ++round) {
    StepTimes loader_now, cached_now;
    throughput.take_cached(arguments.steps, cached_now);
    // The batches that were made ahead meanwhile came for nothing.
    throughput.take_from_loader(arguments.steps + run.loader.prefetch, run.loader.prefetch, loader_now);
    ratios.push_back(loader_now.images_per_second() / cached_now.images_per_second());
    for (auto [all, now] : {std::pair{&from_loader, &loader_now}, {&cached, &cached_now}}) {
      all->seconds.insert(all->seconds.end(), now->seconds.begin(), now->seconds.end());
      all->images += now->images;
    }
  }

  const LoaderSettings& loader = throughput.loader().settings();
  std::cout << fmt::format("{} on {}, batches of {}, on {}; {} compute and {} loader threads\n",
                           run.config.get<std::string>("model.name"), run.dataset.name, loader.batch_size, device.str(),
                           at::get_num_threads(), loader.workers)
            << fmt::format("{:<18} {:>10} {:>12}\n", "batches", "images/s", "ms a step");
  print_row("from the loader", from_loader);
  print_row("one, cached", cached);
  std::cout << fmt::format("ratio {:.3f} (median of {} rounds of {} steps each; from {:.3f} to {:.3f})\n",
                           median(ratios), arguments.rounds, arguments.steps,
                           *std::min_element(ratios.begin(), ratios.end()),
                           *std::max_element(ratios.begin(), ratios.end()));
  return kSuccess;
}

}  // namespace

void add_bench_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("bench", "Measures speed, as ratios of what is measured side by side");
  command->require_subcommand(1);
  CLI::App* train =
      command->add_subcommand("train", "Training steps fed by the loader, beside the same steps on one cached batch");
  const auto arguments = std::make_shared<BenchArguments>();
  add_config_options(*train, line, /*required=*/true);
  add_device_option(*train, line);
  train->add_option("--rounds", arguments->rounds, "Rounds of measuring each")->check(CLI::Range(1, 1000));
  train->add_option("--steps", arguments->steps, "Optimizer steps of each in a round")->check(CLI::Range(1, 100000));
  train->callback([&line, arguments] { line.action = [&line, arguments] { return bench_train(line, *arguments); }; });
}

}  // namespace settrain
