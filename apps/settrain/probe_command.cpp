#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/settrain/command_line.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/interrupt.h"
#include "src/core/scratch_folder.h"
#include "src/probe/probe.h"
#include "src/run_folder/run_folder.h"
#include "src/train/compute_policy.h"
#include "src/train/evaluation.h"
#include "src/train/training.h"

namespace settrain {
namespace {

struct ProbeArguments {
  std::string train, test, val, output;
  ProbeOptions options{};
  bool cosine = false, json = false, overwrite = false;
};

// The run of --config, of which a probe wants the accuracy on the test split alone.
config::Config head_config(const CommandLine& line, const std::string& folder) {
  const config::Config given = load_config(line);
  if (given.get<std::string>("data.name") != "features") {
    given.fail("data.name", "settrain probe takes files of features; `settrain embed` makes them of images");
  }
  if (given.get<std::string>("data.test").empty()) given.fail("data.test", "needed: a probe judges on test images");
  if (given.get<int64_t>("train.epochs") == 0) given.fail("train.epochs", "0: the head of a probe is trained");
  return given.with("run.dir", folder)
      .with("select", config::Texts{"last"})
      .with("eval.every", given.get<int64_t>("train.epochs"))
      .with("eval.during_training", config::Texts{})
      .with("eval.rules", config::Texts{});
}

// Trains the head as the config says.
ProbeResult trained_head(const CommandLine& line, ProgressBar& bar) {
  const auto start = std::chrono::steady_clock::now();
  const ScratchFolder scratch;
  const std::string folder = (scratch.path() / "run").string();
  Experiment run = make_experiment(line.registries, head_config(line, folder), find_device(line.device));
  check_training_data(run);
  RunFolder run_folder = RunFolder::create(folder, /*overwrite=*/false);
  Training(run, &run_folder).train();
  const SplitScores scores = score_split(run, run.dataset.test, ViewUse::kEvaluation, bar);
  const std::string title =
      fmt::format("{} head, {}", run.config.get<std::string>("model.head"), run.config.get<std::string>("loss.name"));
  return judged_scores("head", title, scores.scores.cpu(), scores.labels.cpu(),
                       std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

int probe_files(const CommandLine& line, ProbeArguments arguments) {
  catch_interrupts();
  const bool has_config = !line.config.empty();
  if (has_config == !arguments.train.empty() || (has_config && !(arguments.test + arguments.val).empty()))
    throw ConfigError("settrain probe takes --train and --test, or --config with data.train and data.test");
  if (has_config) {
    const config::Config config = head_config(line, "probe");
    arguments.train = config.get<std::string>("data.train");
    arguments.test = config.get<std::string>("data.test");
    arguments.val = config.get<std::string>("data.val");
  } else if (arguments.test.empty()) {
    throw ConfigError("--test: needed, the features of the images that are answered and judged");
  }
  ProbeOptions options = arguments.options;
  if (arguments.cosine) options.distance = Distance::kCosine;
  for (const double c : options.c) {
    if (!(c > 0) || !std::isfinite(c)) throw ConfigError(fmt::format("--c {}: expected a number above 0", c));
  }
  if (!arguments.output.empty()) refuse_existing(arguments.output, arguments.overwrite);
  ProbeData data = read_probe_data(arguments.train, arguments.test, arguments.val);
  nlohmann::json numbers{{"train", arguments.train},
                         {"test", arguments.test},
                         {"train_images", data.train.features.size(0)},
                         {"test_images", data.test.features.size(0)},
                         {"width", data.train.features.size(1)},
                         {"classes", data.classes},
                         {"distance", arguments.cosine ? "cosine" : "euclidean"},
                         {"normalise", options.to_unit_length ? "l2" : "none"}};
  if (!arguments.val.empty()) numbers["val"] = arguments.val;
  ProbeReport report;
  {
    ProgressBar bar;
    report = probe_features(std::move(data), options, bar);
    if (has_config) report.results.push_back(trained_head(line, bar));
  }
  numbers.update(probe_json(report));
  if (!arguments.output.empty()) write_file_atomically(arguments.output, numbers.dump(1) + "\n");
  std::cout << (arguments.json ? numbers.dump(1) + "\n" : format_probe(report));
  return kSuccess;
}

}  // namespace

void add_probe_command(CLI::App& app, CommandLine& line) {
  const auto [command, arguments] = add_subcommand<ProbeArguments>(
      app, line, "probe", probe_files,
      "Judges features of frozen networks by simple classifiers: nearest neighbours, class means and logistic regression");
  ProbeOptions& options = arguments->options;
  command->add_option(
      "--train", arguments->train,
      "The features and labels of the training images: safetensors or .npz with features [images, width] "
      "and labels [images]");
  command->add_option("--test", arguments->test, "Those of the images that are answered and judged");
  command->add_option("--val", arguments->val,
                      "Those of the images that choose C; without them a tenth of each class' training images does");
  add_integer(*command, "--neighbours", options.neighbours, 1, 1000000, "How many nearest training images vote");
  command->add_flag("--cosine", arguments->cosine,
                    "Compares by the angle between features, not by their Euclidean distance; logistic regression is "
                    "the same");
  command
      ->add_option("--c", options.c,
                   "The C of logistic regression that are tried: C weighs the log losses' sum against half the squares "
                   "of the weights. A single one is taken as it is")
      ->delimiter(',')
      ->capture_default_str();
  add_choice<bool>(*command, "--normalise", options.to_unit_length, {{"none", false}, {"l2", true}},
                   "l2 divides every feature vector by its length first");
  add_config_options(*command, line, /*required=*/false);
  add_device_option(*command, line);
  command->add_option("--out", arguments->output, "Writes the numbers to this file as JSON, too");
  command->add_flag("--overwrite", arguments->overwrite, "Replaces the file of --out where it is there");
  command->add_flag("--json", arguments->json, "Prints JSON instead of a table");
}

}  // namespace settrain
