#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/settrain/command_line.h"
#include "metrics/label_sets.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/eval/results_table.h"
#include "src/inference/guarantee.h"
#include "src/inference/prepare_model.h"
#include "src/inference/results.h"
#include "src/inference/score_file.h"
#include "src/inference/trained_run.h"

namespace settrain {
namespace {

struct ScoresArguments {
  std::string run, split = "val", output;
  CheckpointChoice choice;
  bool overwrite = false;
  std::string judged, thresholds;  // files of scores with label sets
  std::vector<int64_t> top_k{1, 5};
  std::vector<double> average_k{2, 5};
  std::string average_k_score;  // empty: as the file says
  bool json = false;
};

/// Prints the accuracies of a file's scores by all labels of its images.
int judge_file(const CommandLine& line, const ScoresArguments& arguments) {
  for (const auto& [is_given, name] :
       {std::pair(!arguments.run.empty(), "RUN"),
        {!arguments.output.empty(), "--out"},
        {arguments.overwrite, "--overwrite"},
        {!arguments.choice.checkpoint.empty() || !arguments.choice.metric.empty(), "--checkpoint and --metric"},
        {!line.settings.empty(), "--set"}}) {
    if (is_given) throw ConfigError(fmt::format("--all-labels judges a file; leave out {}", name));
  }
  const ScoreFile judged = read_label_set_file(arguments.judged);
  for (const std::string& warning : warnings_of_scale(judged, arguments.judged)) log::warning("[scores] " + warning);
  const int64_t classes = judged.facts.classes;
  AverageKOptions average_k{.average_k = {},
                            .average_k_score = AverageKScore::kSoftmax,
                            .average_k_ties = Ties::kKeepAll,
                            .threshold_from = "same"};
  if (!arguments.average_k_score.empty()) {
    average_k.average_k_score = config::value_named(average_k_scores(), arguments.average_k_score);
  } else if (judged.facts.probability == ProbabilityKind::kSigmoid) {
    average_k.average_k_score = AverageKScore::kSigmoid;
  }
  // As eval.average_k: no set is larger than all classes.
  for (const double k : arguments.average_k) {
    if (!std::isfinite(k)) throw ConfigError(fmt::format("--average-k {}: expected a finite number", k));
    if (k <= static_cast<double>(classes)) average_k.average_k.push_back(k);
  }
  MetricContext context;
  ScoreFile thresholds;
  if (!arguments.thresholds.empty()) {
    thresholds = read_label_set_file(arguments.thresholds);
    check_same_model(arguments.judged, judged, arguments.thresholds, thresholds);
    for (const std::string& warning : warnings_of_scale(thresholds, arguments.thresholds))
      log::warning("[scores] " + warning);
    context.threshold_scores = &thresholds.scores.scores;
  }
  const ResultsColumn column{"all labels", label_set_accuracies(judged.scores.scores, judged.scores.label_sets,
                                                                arguments.top_k, average_k, context)};
  if (!arguments.json) {
    std::cout << format_results({&column, 1});
    return kSuccess;
  }
  nlohmann::json numbers = nlohmann::json::object();
  for (const MetricValue& value : column.values) numbers[value.name] = value.value;
  std::cout << numbers.dump(1) << "\n";
  return kSuccess;
}

int write_scores(const CommandLine& line, const ScoresArguments& arguments) {
  catch_interrupts();
  if (!arguments.judged.empty()) return judge_file(line, arguments);
  if (arguments.run.empty() || arguments.output.empty()) {
    throw ConfigError("settrain scores takes a run's folder and --out FILE, or a file of scores by --all-labels");
  }
  if (std::filesystem::path(arguments.output).extension() != ".safetensors") {
    throw ConfigError(fmt::format("--out {}: expected a name that ends in .safetensors", arguments.output));
  }
  const at::Device device = find_device(line.device);
  const RunFolder folder = RunFolder::open_existing(arguments.run);
  const std::string checkpoint = chosen_checkpoint(line, arguments.choice, folder).stem().string();
  refuse_existing(arguments.output, arguments.overwrite);
  TrainedRun run = open_trained_run(line.registries, arguments.run, {checkpoint}, device, line.settings);
  const Checkpoint weights = load_weights(run.experiment, run.checkpoints.front());
  const InferenceForm form = prepare_run(run.experiment);
  ProgressBar bar;
  ScoreFile scores{labelled_scores(run.experiment, arguments.split, bar), run.experiment.class_facts,
                   weights.text("sha256"), why_no_guarantee(run.experiment, weights, arguments.split)};
  log_skipped_images(*run.experiment.loader.skipped);
  write_score_file(
      arguments.output, scores,
      {{"run", arguments.run}, {"checkpoint", checkpoint}, {"split", arguments.split}, {"inference", name_of(form)}});
  std::cout << fmt::format("'{}': scores of {} images of {} for {} classes, by {}\n", arguments.output,
                           format_count(scores.scores.scores.size(0)), arguments.split,
                           format_count(scores.facts.classes), checkpoint);
  return kSuccess;
}

}  // namespace

void add_scores_command(CLI::App& app, CommandLine& line) {
  const auto [command, arguments] = add_subcommand<ScoresArguments>(
      app, line, "scores", write_scores,
      "Writes the scores that a run's model gives the images of a split, with their labels, as safetensors; with "
      "--all-labels, judges such a file by all labels of its images");
  command->add_option("run", arguments->run, "The run's folder");
  command->add_option("--split", arguments->split, "train, val, calibration or test")
      ->check(CLI::IsMember({"train", "val", "calibration", "test"}))
      ->capture_default_str();
  command->add_option("--out", arguments->output, "The file to write");
  arguments->choice.add_options(*command);
  command->add_flag("--overwrite", arguments->overwrite, "Replaces the file where it is there");
  CLI::Option* judged = command->add_option(
      "--all-labels", arguments->judged,
      "In place of a run: a file of scores of images with several labels, safetensors or .npz with scores and label_sets "
      "[images, classes], whose accuracies are printed");
  command
      ->add_option("--threshold-scores", arguments->thresholds,
                   "Another such file, of validation images, which sets the thresholds of average-K")
      ->needs(judged);
  command->add_option("--top-k", arguments->top_k, "The K of top-K recall")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->needs(judged);
  command
      ->add_option("--average-k", arguments->average_k,
                   "The K of average-K; those above the number of classes are left out")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->needs(judged);
  command
      ->add_option("--average-k-score", arguments->average_k_score,
                   "What is compared with the threshold: softmax, sigmoid or raw; by default the file's probability")
      ->check(CLI::IsMember({"softmax", "sigmoid", "raw"}))
      ->needs(judged);
  command->add_flag("--json", arguments->json, "Prints JSON")->needs(judged);
  add_set_option(*command, line, "key.path=value over the run's config, such as data.root=FOLDER");
  add_device_option(*command, line);
}

}  // namespace settrain
