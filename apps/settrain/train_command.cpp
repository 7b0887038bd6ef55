#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/settrain/command_line.h"
#include "models/model.h"
#include "src/core/atomic_file.h"
#include "src/core/human.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/streams.h"
#include "src/engine/results.h"
#include "src/engine/training.h"
#include "src/run/provenance.h"

namespace settrain {
namespace {

nlohmann::ordered_json to_json(const LabelNoiseReport& noise) {
  nlohmann::ordered_json json{{"kind", noise.kind},
                              {"nominal_rate", noise.nominal_rate},
                              {"effective_rate", noise.effective_rate},
                              {"changed_rate", noise.changed_rate},
                              {"changed", noise.changed}};
  if (noise.within_superclass) json["within_superclass"] = *noise.within_superclass;
  json["digest"] = noise.digest;
  return json;
}

void write_record(const Experiment& run, const RunFolder& folder, const CommandLine& line) {
  write_file_atomically(folder.config(), run.config.to_yaml());
  nlohmann::ordered_json provenance = collect_provenance({.command_line = line.arguments,
                                                          .device = run.device,
                                                          .seed = run.general.seed,
                                                          .rng_version = kRngVersion,
                                                          .dataset = run.dataset.name,
                                                          .data_digest = run.dataset.digest});
  provenance["label_noise"] = to_json(run.label_noise);
  write_provenance(folder.provenance(), provenance);
}

void log_start(const Experiment& run, const CommandLine& line) {
  const Dataset& data = run.dataset;
  log::info(fmt::format("[data] {}: {} classes; {} training, {} validation and {} test images of {}x{}x{}", data.name,
                        data.num_classes(), format_count(data.train.size()), format_count(data.val.size()),
                        format_count(data.test.size()), data.channels, data.height, data.width));
  const LabelNoiseReport& noise = run.label_noise;
  if (noise.kind != "none") {
    log::info(fmt::format(
        "[data] label noise {}: nominal rate {}, effective {:.4f}; {} training labels changed ({:.4f})", noise.kind,
        noise.nominal_rate, noise.effective_rate, format_count(noise.changed), noise.changed_rate));
  }
  const auto absent = std::count(run.train_counts.begin(), run.train_counts.end(), 0);
  if (absent > 0) {
    const auto first = std::find(run.train_counts.begin(), run.train_counts.end(), 0) - run.train_counts.begin();
    log::warning(fmt::format("[data] {} of {} classes have no training image; the first is {}", absent,
                             data.num_classes(), data.class_names[static_cast<size_t>(first)]));
  }
  int64_t parameters = 0;
  for (const at::Tensor& parameter : run.model->parameters()) parameters += parameter.numel();
  log::info(fmt::format("[model] {}: {} parameters, on {}", run.config.get<std::string>("model.name"),
                        format_count(parameters), run.device.str()));
  const auto& loss = run.config.get<std::string>("loss.name");
  if (run.config.get<std::string>("model.head") == "normalised" &&
      !line.registries.losses.at(loss).requirements.normalised_head) {
    log::warning(
        fmt::format("[model] a normalised head's scores lie in [-1, 1], and {} does not scale them: its softmax stays "
                    "near uniform; model.head: linear suits it",
                    loss));
  }
}

int train(const CommandLine& line, bool overwrite) {
  const at::Device device = find_device(line.device);
  // The folder comes after the data: a run that could never start leaves none behind.
  Experiment run = make_experiment(line.registries, load_config(line), device);
  RunFolder folder = RunFolder::create(run.config.get<std::string>("run.dir"), overwrite);
  log::open_file(folder.log());
  catch_interrupts();

  write_record(run, folder, line);
  log_start(run, line);
  Training training(run, folder);
  if (const int signal = training.train()) return 128 + signal;

  const auto results = evaluate_checkpoints(run, chosen_checkpoints(run, folder), training.progress_bar());
  write_results(run, folder, results);
  std::cout << format_results(run, results);
  log::info("[run] everything is in " + folder.path().string() +
            ": results.json, metrics.csv, checkpoints/, log.txt, TensorBoard's events");
  return interrupted() ? 128 + interrupted() : kSuccess;
}

}  // namespace

void add_train_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("train", "Trains a model as a config says, and evaluates it");
  add_config_options(*command, line, /*required=*/true);
  add_device_option(*command, line);
  const auto overwrite = std::make_shared<bool>(false);
  command->add_flag("--overwrite", *overwrite, "Replaces a run that is already in run.dir");
  command->callback([&line, overwrite] { line.action = [&line, overwrite] { return train(line, *overwrite); }; });
}

}  // namespace settrain
