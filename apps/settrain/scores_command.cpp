#include <fmt/format.h>

#include <iostream>

#include "apps/settrain/command_line.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/text.h"
#include "src/inference/results.h"
#include "src/inference/score_file.h"
#include "src/inference/trained_run.h"

namespace settrain {
namespace {

struct ScoresArguments {
  std::string run, split = "val", output;
  CheckpointChoice choice;
  bool overwrite = false;
};

int write_scores(const CommandLine& line, const ScoresArguments& arguments) {
  catch_interrupts();
  if (std::filesystem::path(arguments.output).extension() != ".safetensors") {
    throw ConfigError(fmt::format("--out {}: expected a name that ends in .safetensors", arguments.output));
  }
  const at::Device device = find_device(line.device);
  const RunFolder folder = RunFolder::open_existing(arguments.run);
  const std::string checkpoint = chosen_checkpoint(line, arguments.choice, folder).stem().string();
  refuse_existing(arguments.output, arguments.overwrite);
  TrainedRun run = open_trained_run(line.registries, arguments.run, {checkpoint}, device, line.settings);
  const Checkpoint weights = load_weights(run.experiment, run.checkpoints.front());
  ProgressBar bar;
  const ScoreFile scores{labelled_scores(run.experiment, arguments.split, bar), run.experiment.class_facts,
                         weights.text("sha256"), why_no_guarantee(run.experiment, weights, arguments.split)};
  log_skipped_images(*run.experiment.loader.skipped);
  write_score_file(arguments.output, scores,
                   {{"run", arguments.run}, {"checkpoint", checkpoint}, {"split", arguments.split}});
  std::cout << fmt::format("'{}': scores of {} images of {} for {} classes, by {}\n", arguments.output,
                           format_count(scores.scores.scores.size(0)), arguments.split,
                           format_count(scores.facts.classes), checkpoint);
  return kSuccess;
}

}  // namespace

void add_scores_command(CLI::App& app, CommandLine& line) {
  const auto [command, arguments] = add_subcommand<ScoresArguments>(
      app, line, "scores", write_scores,
      "Writes the scores that a run's model gives the images of a split, with their labels, as safetensors");
  command->add_option("run", arguments->run, "The run's folder")->required();
  command->add_option("--split", arguments->split, "train, val, calibration or test")
      ->check(CLI::IsMember({"train", "val", "calibration", "test"}))
      ->capture_default_str();
  command->add_option("--out", arguments->output, "The file to write")->required();
  arguments->choice.add_options(*command);
  command->add_flag("--overwrite", arguments->overwrite, "Replaces the file where it is there");
  add_set_option(*command, line, "key.path=value over the run's config, such as data.root=FOLDER");
  add_device_option(*command, line);
}

}  // namespace settrain
