#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/settrain/bench_command.h"
#include "apps/settrain/processes.h"
#include "models/model.h"
#include "src/core/interrupt.h"
#include "src/core/text.h"
#include "src/measure/cost/throughput.h"
#include "src/parallel/gradient_sum.h"

namespace settrain {
namespace {

using Clock = std::chrono::steady_clock;

// One way to train, and its speed in each round.
struct Contestant {
  std::string name;
  Experiment run;
  Throughput throughput;
  std::vector<double> images_per_second;

  Contestant(std::string called, Experiment experiment)
      : name(std::move(called)), run(std::move(experiment)), throughput(run, OnSignal::kGoOn) {}
};

using Contestants = std::vector<std::unique_ptr<Contestant>>;

// Milliseconds for adding gradients of the model's size, without other work.
double sum_ms(ProcessGroup& group, const Model& model, std::optional<int64_t> bucket_bytes) {
  constexpr int kRepetitions = 20;
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& parameter : model.parameters()) parameters.push_back(parameter.detach().requires_grad_());
  const auto sum = make_gradient_sum(group, parameters, bucket_bytes);
  std::vector<int64_t> contributors(static_cast<size_t>(group.world_size()));
  for (size_t rank = 0; rank < contributors.size(); ++rank) contributors[rank] = static_cast<int64_t>(rank);
  std::vector<double> times;
  for (int i = 0; i < kRepetitions; ++i) {
    for (at::Tensor& parameter : parameters) parameter.mutable_grad() = at::zeros_like(parameter);
    group.all_gather(at::zeros({1}));  // all begin together
    const auto start = Clock::now();
    sum->start();
    sum->begin_round(/*is_last=*/true);
    sum->end_round(contributors);
    sum->finish();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return median(times);
}

struct Sums {
  int64_t bytes = 0;
  double ordered_ms = 0, backend_ms = 0;
};

void measure_in_turns(ProcessGroup& group, const TrainBench& bench, Contestants& all) {
  for (int64_t round = -1; round < bench.rounds; ++round) {  // the first one warms up
    for (const auto& contestant : all) {
      // All processes begin a round together, or all end, since the others would wait for one that ends alone.
      const int signal = group.all_gather(at::full({1}, interrupted(), at::kInt)).max().item<int>();
      if (signal != 0) throw Interrupted(signal);
      if (contestant->run.group->world_size() == 1 && !group.is_first()) continue;
      StepTimes times;
      contestant->throughput.take_cached(round < 0 ? bench.warm_up + 1 : bench.steps, times);
      if (round >= 0) contestant->images_per_second.push_back(times.images_per_second());
    }
  }
}

std::string as_text(const Contestants& all, const Sums& sums, const TrainBench& bench) {
  const Experiment& run = all.front()->run;
  std::string text =
      fmt::format("{}, {}x{}x{}, batches of {} in each process, on {}; {} compute threads in each\n",
                  run.config.get<std::string>("model.name"), run.input.channels, run.input.height, run.input.width,
                  run.loader.options.batch_size, run.policy.describe(), at::get_num_threads()) +
      fmt::format("{:<34} {:>10}  {}\n", "training", "images/s", "over one process, from each round");
  for (const auto& contestant : all) {
    text += fmt::format("{:<34} {:>10.1f}", contestant->name, median(contestant->images_per_second));
    if (contestant != all.front()) {
      const std::vector<double> over = ratios(contestant->images_per_second, all.front()->images_per_second);
      const auto [least, most] = std::minmax_element(over.begin(), over.end());
      text += fmt::format("  {:.3f} (median of {} rounds of {} steps; from {:.3f} to {:.3f})", median(over),
                          over.size(), bench.steps, *least, *most);
    }
    text += '\n';
  }
  return text + fmt::format("adding {} of gradients alone: {:.2f} ms in order, {:.2f} ms by the backend\n",
                            format_bytes(static_cast<uint64_t>(sums.bytes)), sums.ordered_ms, sums.backend_ms);
}

std::string as_json(const Contestants& all, const Sums& sums, int64_t processes) {
  nlohmann::ordered_json json{{"processes", processes},
                              {"threads", at::get_num_threads()},
                              {"gradient_bytes", sums.bytes},
                              {"ordered_sum_ms", sums.ordered_ms},
                              {"backend_sum_ms", sums.backend_ms}};
  for (const auto& contestant : all) {
    json["images_per_second"][contestant->name] = contestant->images_per_second;
    json["over_one_process"][contestant->name] = ratios(contestant->images_per_second, all.front()->images_per_second);
  }
  return json.dump(1) + "\n";
}

}  // namespace

int bench_processes(const CommandLine& line, const TrainBench& bench, const config::Config& config) {
  Processes processes;
  if (!processes.are_launched()) return repeat_in_processes(line, bench.processes);
  return processes.run([&] {
    const at::Device device = processes.device(line.device);
    const std::shared_ptr<ProcessGroup> group = processes.connect(config, device);
    const auto experiment = [&](const char* deterministic, const std::shared_ptr<ProcessGroup>& with) {
      return make_experiment(line.registries, config.with("train.deterministic", std::string(deterministic)), device,
                             FirstWeights::kDrawn, with);
    };
    const std::string several = fmt::format("{} processes", group->world_size());
    Contestants all;
    // The experiment that is made last decides which algorithms the process may use. It is the same for all processes.
    auto ordered = std::make_unique<Contestant>(several + ", sums in order", experiment("true", group));
    auto backend = std::make_unique<Contestant>(several + ", the backend's sums", experiment("false", group));
    all.push_back(std::make_unique<Contestant>("one process", experiment("false", nullptr)));
    all.push_back(std::move(ordered));
    all.push_back(std::move(backend));
    catch_interrupts();
    measure_in_turns(*group, bench, all);
    const Model& model = *all.front()->run.model;
    const Sums sums{4 * model.num_parameters(), sum_ms(*group, model, std::nullopt),
                    sum_ms(*group, model, config.read<ParallelOptions>("parallel").bucket_bytes())};
    if (group->is_first())
      std::cout << (bench.json ? as_json(all, sums, group->world_size()) : as_text(all, sums, bench));
    return kSuccess;
  });
}

}  // namespace settrain
