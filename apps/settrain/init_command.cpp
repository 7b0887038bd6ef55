// From a folder of photographs to a config that trains on them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <thread>

#include "apps/settrain/command_line.h"
#include "apps/settrain/published_weights.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/data_tools/starter.h"
#include "src/measure/cost/dry_run.h"
#include "src/studies/sweep/slurm_script.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

struct InitArguments {
  std::string to = ".";
  SplitRequest request;
  double minutes = 4;
  int64_t workers = std::max<int64_t>(1, std::thread::hardware_concurrency());
  bool without_reading = false;
};

std::vector<KnownWeights> weights_here(const ModelRegistry& models) {
  std::vector<KnownWeights> found;
  for (const PublishedWeights& weights : published_weights(models)) {
    const fs::path file = weights_folder() / weights.file.name;
    if (!weights.file.name.empty() && fs::is_regular_file(file)) found.push_back({weights.model, file});
  }
  return found;
}

// A file for configs whose cost is tried.
struct TrialFile {
  ~TrialFile() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  // As training will load it.
  config::Config load(const CommandLine& line, const std::string& text) const {
    write_file_atomically(path, text);
    return config::load(experiment_schema(line.registries), path, {});
  }

  fs::path path;
};

// The largest input size, and the most epochs at it, that fit into the time on this machine; where nothing does, the
// least of both. `text_of`: the config with such a choice.
template <class Text>
StarterCost choose_cost(const CommandLine& line, const TrialFile& file, at::Device device, double seconds,
                        const StarterNetwork& network, const Text& text_of) {
  StarterCost cost;
  for (const int64_t size : network.input_sizes) {
    cost.input_size = size;
    cost.epochs = network.least_epochs;
    Experiment run =
        make_experiment(line.registries, file.load(line, text_of(cost)), device, FirstWeights::kPretrained);
    ProgressBar bar;
    const DryRun measured = dry_run(run, bar);
    if (!measured.divergence.empty()) throw NumericalError(measured.divergence);
    const double epoch = (measured.train_s + measured.eval_s) / static_cast<double>(network.least_epochs);
    const auto fitting = static_cast<int64_t>((seconds - measured.features_s) / epoch);
    cost.epochs = std::clamp(fitting, network.least_epochs, network.most_epochs);
    const double all = measured.features_s + static_cast<double>(cost.epochs) * epoch;
    log::info(fmt::format("[init] {} at {} pixels: {} epochs take about {} on {}", network.model, size, cost.epochs,
                          format_duration(all), device.str()));
    cost.size_reason =
        size == network.input_sizes.front()
            ? "pixels of height and width: larger ones show more and cost more"
            : fmt::format("pixels of height and width; larger ones would take longer than {:.3g} minutes",
                          seconds / 60);
    cost.epochs_reason = fmt::format("about {} on this machine ({})", format_duration(all), device.str());
    if (fitting >= network.least_epochs) break;
  }
  return cost;
}

int init_folder(const CommandLine& line, InitArguments arguments) {
  SplitRequest& request = arguments.request;
  const fs::path out = arguments.to;
  const std::string name = starter_name(request.folder);
  request.out = (out / "lists" / name).lexically_normal();
  const fs::path file = (out / (name + ".yaml")).lexically_normal();
  if (fs::exists(file)) refuse_existing(file, request.overwrite);  // else write_split() makes its folder
  check_out(request);
  if (!is_utf8(weights_folder().string()))
    throw ConfigError("$SETTRAIN_WEIGHTS is not UTF-8 text, and a config cannot hold it");
  const at::Device device = find_device(line.device);
  catch_interrupts();

  const FolderSplit split =
      split_folder(request.folder, request.rule, request.seed, arguments.without_reading ? 0 : arguments.workers);
  write_split(request, split);
  std::cout << describe_split(request.rule, split) << std::flush;
  StarterFacts facts = starter_facts(request.folder, split);
  facts.has_gpu = device.is_cuda();
  const StarterNetwork network = choose_network(facts, weights_here(line.registries.models));
  if (network.weights.empty()) {
    log::warning(
        fmt::format("[init] '{}' has no weights of a trained network, so {} is trained from nothing, which takes more "
                    "time and far more photographs. `settrain data fetch-weights resnet18` gets some; then run init "
                    "again with --overwrite",
                    weights_folder().string(), network.model));
  }
  const auto text_of = [&](const StarterCost& cost) { return starter_config(request, split, facts, network, cost); };
  const TrialFile trial{out / (name + ".trial.yaml")};
  const StarterCost cost = choose_cost(line, trial, device, 60 * arguments.minutes, network, text_of);
  write_file_atomically(file, text_of(cost));

  const std::string run = "runs/" + name;
  std::cout << fmt::format(
      "\n'{}' is a config for these images, with a reason behind each line. The next commands:\n"
      "settrain --config {}\n"
      "settrain calibrate {}\n"
      "settrain predict {} NEW_PHOTOGRAPHS\n",
      file.string(), shell_word(file.string()), run, run);
  return kSuccess;
}

}  // namespace

void add_init_command(CLI::App& app, CommandLine& line) {
  const auto [command, arguments] = add_subcommand<InitArguments>(
      app, line, "init", init_folder,
      "Begins with a folder that has a folder of photographs for each class: reads them all, splits them, chooses "
      "network, input size and epochs by their cost on this machine, and writes a config with its reasons");
  SplitRequest& request = arguments->request;
  command->add_option("folder", request.folder, "The folder of classes")
      ->option_text("FOLDER")
      ->required()
      ->check(not_empty("folder"));
  command->add_option("--to", arguments->to, "The folder for the config NAME.yaml and the lists, lists/NAME")
      ->capture_default_str()
      ->check(not_empty("folder"));
  command->add_option("--minutes", arguments->minutes, "The time that training may take on this machine, about")
      ->capture_default_str()
      ->check(number_between(0.1, 1e5));
  command->add_option("--seed", request.seed, "Seed of the split")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--without-reading", arguments->without_reading,
                    "Does not read every image first; training then skips those that cannot be read");
  add_integer(*command, "--workers", arguments->workers, 1, 256, "Threads that read images");
  command->add_flag("--overwrite", request.overwrite, "Replaces a config and lists of that name");
  add_device_option(*command, line);
}

}  // namespace settrain
