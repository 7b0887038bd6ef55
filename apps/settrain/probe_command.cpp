#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/settrain/command_line.h"
#include "models/model.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/scratch_folder.h"
#include "src/inference/embed.h"
#include "src/probe/probe.h"
#include "src/run_folder/run_folder.h"
#include "src/train/compute_policy.h"
#include "src/train/evaluation.h"
#include "src/train/training.h"
#include "src/train/training_checks.h"

namespace settrain {
namespace {

struct ProbeArguments {
  std::string train, test, val, output;
  ProbeOptions options{};
  bool cosine = false, json = false, overwrite = false;
};

bool is_of_features(const config::Config& config) {
  return config.get<std::string>("data.name") == "features";
}

// The run of --config, of which the head trains, and of which a probe wants the accuracy on the test split alone.
config::Config head_config(const CommandLine& line, const std::string& folder) {
  const config::Config given = load_config(line);
  const bool has_files = is_of_features(given);
  if (has_files && given.get<std::string>("data.test").empty())
    given.fail("data.test", "needed: a probe judges on test images");
  if (given.get<int64_t>("train.epochs") == 0) given.fail("train.epochs", "0: the head of a probe is trained");
  CommandLine of_head = line;
  if (!has_files) of_head.settings.emplace_back("model.trainable=[head]");
  return load_config(of_head)
      .with("run.dir", folder)
      .with("select", config::Texts{"last"})
      .with("eval.every", given.get<int64_t>("train.epochs"))
      .with("eval.during_training", config::Texts{})
      .with("eval.rules", config::Texts{});
}

struct TrainedHead {
  Experiment run;
  ProbeResult result;
};

// Trains the head as the config says.
TrainedHead train_head(const CommandLine& line, ProgressBar& bar) {
  const auto start = std::chrono::steady_clock::now();
  const ScratchFolder scratch;
  const std::string folder = (scratch.path() / "run").string();
  Experiment run =
      make_experiment(line.registries, head_config(line, folder), find_device(line.device), FirstWeights::kPretrained);
  if (run.dataset.test.size() == 0) throw DataError("a probe judges on test images, and the data set has none");
  check_training_data(run, {"train", "val", "test"});
  for (const std::string& warning : run.input_warnings) log::warning(warning);
  RunFolder run_folder = RunFolder::create(folder, /*overwrite=*/false);
  Training(run, &run_folder).train();
  const SplitScores scores = score_split(run, run.dataset.test, ViewUse::kEvaluation, bar);
  const std::string title =
      fmt::format("{} head, {}", run.config.get<std::string>("model.head"), run.config.get<std::string>("loss.name"));
  ProbeResult result = judged_scores("head", title, scores.scores.cpu(), scores.labels.cpu(),
                                     std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return {std::move(run), std::move(result)};
}

// The features of a split's images: the rows on which the head was trained, where these are in a file.
LabelledFeatures features_of(const Experiment& run, const Split& split, ProgressBar& bar) {
  const auto cached = run.loader.features.find(split.name);
  if (cached != run.loader.features.end()) return labelled_features(*cached->second, split.labels, split.name);
  run.model->eval();
  Loader loader = evaluation_loader(run.dataset, split, run.loader, ViewUse::kEvaluation);
  Embeddings found = embed(
      *run.model, run.policy, loader, [&](int64_t id) { return split.images->describe(id); }, bar);
  return labelled_features(FeatureTable(std::move(found.features), found.width), found.labels, split.name);
}

ProbeData features_of(const Experiment& run, ProgressBar& bar) {
  const Dataset& data = run.dataset;
  ProbeData features{.train = features_of(run, data.train, bar),
                     .test = features_of(run, data.test, bar),
                     .val = {},
                     .classes = data.num_classes()};
  if (data.val.size() > 0) features.val = features_of(run, data.val, bar);
  return features;
}

int probe_files(const CommandLine& line, ProbeArguments arguments) {
  catch_interrupts();
  const bool has_config = !line.config.empty();
  if (has_config == !arguments.train.empty() || (has_config && !(arguments.test + arguments.val).empty()))
    throw ConfigError("settrain probe takes --train and --test, or --config with data of its own");
  const std::optional<config::Config> config = has_config ? std::optional(head_config(line, "probe")) : std::nullopt;
  const bool has_images = config && !is_of_features(*config);
  if (config && !has_images) {
    arguments.train = config->get<std::string>("data.train");
    arguments.test = config->get<std::string>("data.test");
    arguments.val = config->get<std::string>("data.val");
  } else if (!has_images && arguments.test.empty()) {
    throw ConfigError("--test: needed, the features of the images that are answered and judged");
  }
  ProbeOptions options = arguments.options;
  if (arguments.cosine) options.distance = Distance::kCosine;
  for (const double c : options.c) {
    if (!(c > 0) || !std::isfinite(c)) throw ConfigError(fmt::format("--c {}: expected a number above 0", c));
  }
  if (!arguments.output.empty()) refuse_existing(arguments.output, arguments.overwrite);
  ProgressBar bar;
  std::optional<TrainedHead> head;
  ProbeData data;
  if (config) {
    head = train_head(line, bar);
    data = features_of(head->run, bar);
  } else {
    data = read_probe_data(arguments.train, arguments.test, arguments.val);
  }
  nlohmann::json numbers{{"train", has_images ? line.config : arguments.train},
                         {"test", has_images ? line.config : arguments.test},
                         {"train_images", data.train.features.size(0)},
                         {"test_images", data.test.features.size(0)},
                         {"width", data.train.features.size(1)},
                         {"classes", data.classes},
                         {"distance", arguments.cosine ? "cosine" : "euclidean"},
                         {"normalise", options.to_unit_length ? "l2" : "none"}};
  if (!arguments.val.empty()) numbers["val"] = arguments.val;
  ProbeReport report = probe_features(std::move(data), options, bar);
  if (head) report.results.push_back(head->result);
  bar.hide();
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
