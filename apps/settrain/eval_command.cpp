#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/settrain/command_line.h"
#include "src/config/load.h"
#include "src/engine/experiment_schema.h"
#include "src/engine/results.h"

namespace settrain {
namespace {

struct EvalArguments {
  std::string run;
  std::vector<std::string> checkpoints;
  bool json = false;
};

// A run is evaluated as it was trained: on its data, with its model.
void refuse_other_settings(const std::vector<std::string>& settings) {
  constexpr const char* kMayDiffer[] = {"data.root", "data.eval_batch_size", "data.workers", "data.prefetch",
                                        "run.threads"};
  for (const std::string& setting : settings) {
    const std::string path = setting.substr(0, setting.find('='));
    const bool may_differ = std::find(std::begin(kMayDiffer), std::end(kMayDiffer), path) != std::end(kMayDiffer);
    if (may_differ || path == "eval" || path.starts_with("eval.")) continue;
    throw ConfigError(fmt::format("--set {}: a run is evaluated as it was trained; `settrain eval` takes eval.* and {}",
                                  path, fmt::join(kMayDiffer, ", ")));
  }
}

int evaluate(const CommandLine& line, const EvalArguments& arguments) {
  refuse_other_settings(line.settings);
  const at::Device device = find_device(line.device);
  const RunFolder folder = RunFolder::open_existing(arguments.run);
  Experiment run = make_experiment(
      line.registries, config::load(experiment_schema(line.registries), folder.config(), line.settings), device);

  std::vector<std::filesystem::path> files;
  for (const std::string& checkpoint : arguments.checkpoints) files.push_back(folder.checkpoint(checkpoint));
  if (files.empty()) files = chosen_checkpoints(run, folder);
  ProgressBar bar;
  const auto results = evaluate_checkpoints(run, files, bar);
  std::cout << (arguments.json ? results_json(run, results).dump(1) + "\n" : format_results(run, results));
  return kSuccess;
}

}  // namespace

void add_eval_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("eval", "Evaluates the checkpoints of a run");
  const auto arguments = std::make_shared<EvalArguments>();
  command->add_option("run", arguments->run, "The run's folder")->required();
  command
      ->add_option("--checkpoint", arguments->checkpoints,
                   "last, or best-val-top5: a name in the run's checkpoints/; may be given several times. Without it "
                   "the best ones by the metrics that the run selected on")
      ->allow_extra_args(false);
  command->add_flag("--json", arguments->json, "Prints JSON instead of tables");
  command->add_option("--set", line.settings, "key.path=value over the run's config, such as eval.average_k=[3]")
      ->allow_extra_args(false);
  add_device_option(*command, line);
  command->callback([&line, arguments] { line.action = [&line, arguments] { return evaluate(line, *arguments); }; });
}

}  // namespace settrain
