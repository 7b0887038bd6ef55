#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "apps/settrain/command_line.h"
#include "apps/settrain/output_file.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "src/core/human.h"
#include "src/core/log.h"
#include "src/inference/export_weights.h"
#include "src/inference/trained_run.h"
#include "src/train/experiment_schema.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

struct ExportArguments {
  std::string run, metric, checkpoint, output;
  bool overwrite = false;
};

// The checkpoint that is asked for; without a wish the one that stands for the run.
fs::path chosen(const CommandLine& line, const ExportArguments& arguments, const RunFolder& folder) {
  if (!arguments.checkpoint.empty()) return folder.checkpoint(arguments.checkpoint);
  if (!arguments.metric.empty()) return folder.checkpoint(folder.selected_checkpoint(arguments.metric).stem().string());
  const config::Config config = config::load(experiment_schema(line.registries), folder.config(), {});
  const auto& select = config.get<config::Texts>("select");
  const auto files = chosen_checkpoints(folder, select);
  warn_of_last_weights(folder, select, files);
  if (files.size() == 1) return files.front();
  throw ConfigError(fmt::format("'{}' has a best checkpoint for each of several metrics: say --metric {}",
                                arguments.run, fmt::join(select, ", or --metric ")));
}

int export_run(const CommandLine& line, const ExportArguments& arguments) {
  const RunFolder folder = RunFolder::open_existing(arguments.run);
  const fs::path checkpoint = chosen(line, arguments, folder);
  fs::path output = arguments.output;
  if (output.empty()) {
    const std::string run = fs::canonical(folder.path()).filename().string();
    output = fmt::format("{}-{}.safetensors", run, checkpoint.stem().string());
  }
  refuse_existing(output, arguments.overwrite);
  const ExportedWeights done = export_weights(checkpoint, output);
  std::cout << fmt::format("'{}': {} tensors of {} numbers, {}, of {} after epoch {}{}\n", output.string(),
                           done.num_tensors, format_count(done.num_elements), format_bytes(fs::file_size(output)),
                           checkpoint.stem().string(), done.epoch,
                           done.averaged ? ", the moving average of the weights" : "");
  return kSuccess;
}

}  // namespace

void add_export_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "export", "Writes a run's weights alone as a safetensors file, which Python loads into torchvision's models");
  const auto arguments = std::make_shared<ExportArguments>();
  command->add_option("run", arguments->run, "The run's folder")->required();
  CLI::Option* metric = command->add_option(
      "--metric", arguments->metric,
      "val/top5: the best checkpoint by that metric, of those that the run selected on; needed where there are several");
  command->add_option("--checkpoint", arguments->checkpoint, "last, or best-val-top5: a name in the run's checkpoints/")
      ->excludes(metric);
  command->add_option("--output", arguments->output,
                      "The file; RUN-CHECKPOINT.safetensors in the current folder without it");
  command->add_flag("--overwrite", arguments->overwrite, "Replaces the file where it is there");
  command->callback([&line, arguments] { line.action = [&line, arguments] { return export_run(line, *arguments); }; });
}

}  // namespace settrain
