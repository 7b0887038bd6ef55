#include "apps/settrain/bench_command.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "src/config/load.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/progress_bar.h"
#include "src/measure/cost/throughput.h"
#include "src/train/experiment_schema.h"
#include "src/train/peak_memory.h"

namespace settrain {
namespace {

constexpr int64_t kBatch = 128;  // default batch size

config::Config bench_config(const CommandLine& line, const TrainBench& bench) {
  for (const std::string& setting : line.settings) {
    if (setting.starts_with("model.name=")) throw ConfigError("--set " + setting + ": --model names it here");
  }
  const std::string model = bench.model.empty() ? "resnet20" : bench.model;
  std::vector<std::string> settings;
  if (line.config.empty()) {
    settings = random_images(line.registries.models.at(model), bench.batch > 0 ? bench.batch : kBatch, bench.size,
                             bench.classes);
    // One batch for each process.
    settings.push_back(fmt::format("data.train_size={}", bench.processes * (bench.batch > 0 ? bench.batch : kBatch)));
  }
  if (bench.batch > 0) settings.push_back(fmt::format("data.batch_size={}", bench.batch));
  if (line.config.empty() || !bench.model.empty()) settings.push_back("model.name=" + model);
  settings.insert(settings.end(), line.settings.begin(), line.settings.end());
  return config::load(experiment_schema(line.registries), config_file(line), settings);
}

// Processes that each keep a core busy between work() and rest().
class BusyProcesses {
 public:
  // The processes rest at first. They must be forked before the model is made, since a fork copies its parent's memory.
  explicit BusyProcesses(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const pid_t child = ::fork();
      if (child == 0) be_busy();
      if (child < 0) {
        const int why = errno;
        end();
        throw Error(fmt::format("no busy process could be started: {}", std::strerror(why)));
      }
      children_.push_back(child);
      ::waitpid(child, nullptr, WUNTRACED);  // it has called prctl, and rests
    }
  }
  ~BusyProcesses() { end(); }
  BusyProcesses(const BusyProcesses&) = delete;
  BusyProcesses& operator=(const BusyProcesses&) = delete;

  void work() { tell(SIGCONT); }
  void rest() { tell(SIGSTOP); }

 private:
  [[noreturn]] void be_busy() const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent_) ::_exit(0);  // the parent ended before prctl
    ::raise(SIGSTOP);
    for (volatile unsigned turns = 0;;) turns = turns + 1;
  }
  void end() {
    tell(SIGKILL);
    for (const pid_t child : children_) ::waitpid(child, nullptr, 0);
  }
  void tell(int signal) {
    for (const pid_t child : children_) ::kill(child, signal);
  }

  pid_t parent_ = ::getpid();
  std::vector<pid_t> children_{};
};

struct MeasuredTraining {
  StepTimes cached, from_loader, beside;
  // Speeds of each round over the cached speed: from the loader, and beside busy processes. Empty where not measured.
  std::vector<double> ratios, beside_ratios;
};

// Trains for two seconds without measuring, until the compute threads have adapted how they wait (set_compute_threads).
void settle(Throughput& throughput) {
  StepTimes unmeasured;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < end) throughput.take_cached(1, unmeasured);
}

// Measures in turns, so that a busy machine slows all alike.
MeasuredTraining measure(Throughput& throughput, const TrainBench& bench, bool with_loader, BusyProcesses& busy) {
  MeasuredTraining all;
  StepTimes warm_up;
  ProgressBar bar;
  throughput.take_cached(bench.warm_up, warm_up);
  for (int64_t round = 0; round < bench.rounds; ++round) {
    bar.update(
        round_progress("[bench] steps", round, bench.rounds, bench.steps * throughput.loader().settings().batch_size));
    StepTimes cached, from_loader, beside;
    throughput.take_cached(bench.steps, cached);
    all.cached += cached;
    if (bench.beside > 0) {
      busy.work();
      settle(throughput);
      throughput.take_cached(bench.steps, beside);
      busy.rest();
      settle(throughput);
      all.beside += beside;
      all.beside_ratios.push_back(beside.images_per_second() / cached.images_per_second());
    }
    if (!with_loader) continue;
    // The loader made these batches ahead during the cached steps, so they do not count.
    const int64_t ahead = throughput.loader().settings().prefetch;
    throughput.take_from_loader(bench.steps + ahead, ahead, from_loader);
    all.from_loader += from_loader;
    all.ratios.push_back(from_loader.images_per_second() / cached.images_per_second());
  }
  bar.hide();
  return all;
}

double in_ms(double seconds, const StepTimes& times) {
  return 1000 * seconds / static_cast<double>(times.seconds.size());
}

std::string as_json(const Experiment& run, const MeasuredTraining& measured, const TrainBench& bench) {
  const StepTimes& cached = measured.cached;
  nlohmann::ordered_json json{{"model", run.config.get<std::string>("model.name")},
                              {"data", run.dataset.name},
                              {"image", {run.input.channels, run.input.height, run.input.width}},
                              {"classes", run.dataset.num_classes()},
                              {"batch", run.loader.options.batch_size},
                              {"device", run.device.str()},
                              {"threads", at::get_num_threads()},
                              {"precision", run.train.precision},
                              {"channels_last", run.policy.channels_last},
                              {"steps", cached.seconds.size()},
                              {"images_per_second", cached.images_per_second()},
                              {"step_ms", 1000 * cached.mean()},
                              {"forward_ms", in_ms(cached.phases.forward, cached)},
                              {"backward_ms", in_ms(cached.phases.backward, cached)},
                              {"update_ms", in_ms(cached.phases.update, cached)},
                              {"peak_memory_bytes", {{"host", peak_memory().host}, {"device", peak_memory().device}}}};
  if (!measured.beside_ratios.empty()) {
    json["beside"] = bench.beside;
    json["images_per_second_beside"] = measured.beside.images_per_second();
    json["ratios_of_beside_to_cached"] = measured.beside_ratios;
  }
  if (!measured.ratios.empty()) {
    json["images_per_second_from_loader"] = measured.from_loader.images_per_second();
    json["ratios_of_loader_to_cached"] = measured.ratios;
  }
  return json.dump(1) + "\n";
}

std::string as_table(const Experiment& run, const MeasuredTraining& measured, const TrainBench& bench) {
  const StepTimes& cached = measured.cached;
  const auto row = [](const char* what, const StepTimes& times) {
    return fmt::format("{:<18} {:>10.1f} {:>12.2f}\n", what, times.images_per_second(), 1000 * times.mean());
  };
  const auto part = [&cached](const char* what, double seconds) {
    return fmt::format("  {:<16} {:>10} {:>12.2f}\n", what, "", in_ms(seconds, cached));
  };
  std::string text =
      fmt::format("{} on {} of {}x{}x{}, batches of {}, on {}; {} compute and {} loader threads\n",
                  run.config.get<std::string>("model.name"), run.dataset.name, run.input.channels, run.input.height,
                  run.input.width, run.loader.options.batch_size, run.policy.describe(), at::get_num_threads(),
                  run.loader.options.resolved_workers(at::get_num_threads())) +
      fmt::format("{:<18} {:>10} {:>12}\n", "batches", "images/s", "ms a step") + row("one, cached", cached) +
      part("forward", cached.phases.forward) + part("backward", cached.phases.backward) +
      part("update", cached.phases.update);
  const auto compared = [&](const char* what, const std::vector<double>& over) {
    const auto [least, most] = std::minmax_element(over.begin(), over.end());
    return fmt::format("{} {:.3f} (median of {} rounds of {} steps each; from {:.3f} to {:.3f})\n", what, median(over),
                       bench.rounds, bench.steps, *least, *most);
  };
  if (!measured.beside_ratios.empty()) {
    text += row(fmt::format("beside {} busy", bench.beside).c_str(), measured.beside) +
            compared("beside / alone", measured.beside_ratios);
  }
  if (!measured.ratios.empty())
    text += row("from the loader", measured.from_loader) + compared("loader / cached", measured.ratios);
  return text + "peak memory " + format_memory(peak_memory()) + "\n";
}

int bench_train(const CommandLine& line, const TrainBench& bench) {
  if (bench.processes > 1) return bench_processes(line, bench, bench_config(line, bench));
  BusyProcesses busy(bench.beside);
  const at::Device device = find_device(line.device);
  Experiment run = make_experiment(line.registries, bench_config(line, bench), device);
  catch_interrupts();
  warn_without_loss_kernels(device);
  Throughput throughput(run);
  const MeasuredTraining measured = measure(throughput, bench, /*with_loader=*/!line.config.empty(), busy);
  std::cout << (bench.json ? as_json(run, measured, bench) : as_table(run, measured, bench));
  return kSuccess;
}

}  // namespace

void add_bench_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("bench", "Benchmarks; ratios are of alternating measurements");
  command->require_subcommand(1);
  const auto [train, bench] = add_subcommand<TrainBench>(
      *command, line, "train", bench_train,
      "Training steps on one cached batch: images/s, and where the time goes. With --config also the same steps fed "
      "by the loader of the config's data; without it on random images");
  add_config_options(*train, line, /*required=*/false);
  add_device_option(*train, line);
  CLI::Option* config = train->get_option("--config");
  train->add_option("--model", bench->model, "A model's name (settrain list models); the config's, or resnet20");
  add_integer(*train, "--batch", bench->batch, 1, 1000000, "Images in a batch; the config's, or 128");
  add_integer(*train, "--size", bench->size, 4, 1024,
              "Height and width of random images; those that the model was made for")
      ->excludes(config);
  add_integer(*train, "--classes", bench->classes, 2, 10000,
              "Number of classes of random images; as many as the model was made for")
      ->excludes(config);
  add_integer(*train, "--rounds", bench->rounds, 1, 1000, "Rounds of measuring each");
  add_integer(*train, "--steps", bench->steps, 1, 100000, "Optimizer steps of each in a round");
  add_integer(*train, "--warm-up", bench->warm_up, 0, 1000, "Steps before, which are not measured");
  train
      ->add_option(
          "--processes", bench->processes,
          "Compares so many processes on this machine with one, of as many compute threads as each of them has")
      ->check(CLI::Range(1, 64))
      ->excludes(config);
  add_integer(*train, "--beside", bench->beside, 1, 1024,
              "Measures the steps also beside so many busy processes, which it starts: how much a shared machine costs")
      ->excludes("--processes");
  train->add_flag("--json", bench->json, "Prints JSON instead of a table");
  add_bench_inference_command(*command, line);
  add_bench_loader_command(*command, line);
  add_bench_losses_command(*command, line);
  add_bench_metrics_command(*command, line);
  add_bench_sets_command(*command, line);
  add_bench_places_command(*command, line);
}

}  // namespace settrain
