#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "apps/settrain/checkpoint_choice.h"
#include "apps/settrain/command_line.h"
#include "apps/settrain/output_file.h"
#include "src/core/error.h"
#include "src/core/human.h"
#include "src/core/log.h"
#include "src/inference/export_weights.h"
#include "src/inference/trained_model.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

struct ExportArguments {
  std::string run, output;
  CheckpointChoice choice;
  bool overwrite = false;
};

// What makes a model of the weights. Those of an early run whose data are gone stay weights alone.
TextMap card_and_rules(const CommandLine& line, const Checkpoint& checkpoint) {
  try {
    const ModelCard card = card_of_checkpoint(line.registries, checkpoint, at::kCPU);
    TextMap metadata{{"card", to_text(card)}};
    if (const auto rules = rules_of_checkpoint(checkpoint, std::ssize(card.class_names))) {
      metadata["rules"] = to_text(*rules);
    }
    return metadata;
  } catch (const DataError& problem) {
    log::warning(fmt::format("[export] {}\nThe file holds the weights without them: `settrain predict` cannot use it",
                             problem.what()));
    return {};
  }
}

int export_run(const CommandLine& line, const ExportArguments& arguments) {
  const RunFolder folder = RunFolder::open_existing(arguments.run);
  const fs::path checkpoint = chosen_checkpoint(line, arguments.choice, folder);
  fs::path output = arguments.output;
  if (output.empty()) {
    const std::string run = fs::canonical(folder.path()).filename().string();
    output = fmt::format("{}-{}.safetensors", run, checkpoint.stem().string());
  }
  refuse_existing(output, arguments.overwrite);
  const Checkpoint weights = load_checkpoint(checkpoint);
  const TextMap more = card_and_rules(line, weights);
  const ExportedWeights done = export_weights(weights, output, more);
  std::cout << fmt::format("'{}': {} tensors of {} numbers, {}, of {} after epoch {}{}{}\n", output.string(),
                           done.num_tensors, format_count(done.num_elements), format_bytes(fs::file_size(output)),
                           checkpoint.stem().string(), done.epoch,
                           done.averaged ? ", the moving average of the weights" : "",
                           more.contains("rules") ? "; with the rules that were calibrated" : "");
  return kSuccess;
}

}  // namespace

void add_export_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "export",
      "Writes a run's model as one safetensors file, for `settrain predict`; Python loads its weights into torchvision's "
      "models");
  const auto arguments = std::make_shared<ExportArguments>();
  command->add_option("run", arguments->run, "The run's folder")->required();
  arguments->choice.add_options(*command);
  command->add_option("--output", arguments->output,
                      "The file; RUN-CHECKPOINT.safetensors in the current folder without it");
  command->add_flag("--overwrite", arguments->overwrite, "Replaces the file where it is there");
  command->callback([&line, arguments] { line.action = [&line, arguments] { return export_run(line, *arguments); }; });
}

}  // namespace settrain
