#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/settrain/command_line.h"
#include "src/core/error.h"
#include "src/inference/results.h"
#include "src/inference/trained_run.h"

namespace settrain {
namespace {

struct EvalArguments {
  std::string run;
  std::vector<std::string> checkpoints;
  bool json = false;
};

int evaluate(const CommandLine& line, const EvalArguments& arguments) {
  const at::Device device = find_device(line.device);
  TrainedRun run = open_trained_run(line.registries, arguments.run, arguments.checkpoints, device, line.settings);
  const bool is_set = std::ranges::any_of(
      line.settings, [](const std::string& setting) { return setting.starts_with("run.inference="); });
  if (is_set && run.experiment.config.read<RunOptions>("run").inference != InferenceForm::kExact) {
    throw ConfigError(
        "--set run.inference: metrics are of the exact form, in which the model was trained; `settrain scores RUN --set "
        "run.inference=FORM` writes the scores of another");
  }
  ProgressBar bar;
  const auto results = evaluate_checkpoints(run.experiment, run.checkpoints, bar);
  log_skipped_images(*run.experiment.loader.skipped);
  std::cout << (arguments.json ? results_json(results).dump(1) + "\n" : format_results(results));
  return kSuccess;
}

}  // namespace

void add_eval_command(CLI::App& app, CommandLine& line) {
  const auto [command, arguments] =
      add_subcommand<EvalArguments>(app, line, "eval", evaluate, "Evaluates the checkpoints of a run");
  command->add_option("run", arguments->run, "The run's folder")->required();
  command
      ->add_option("--checkpoint", arguments->checkpoints,
                   "last, or best-val-top5: a name in the run's checkpoints/; may be given several times. Without it "
                   "the best ones by the metrics that the run selected on")
      ->allow_extra_args(false);
  command->add_flag("--json", arguments->json, "Prints JSON instead of tables");
  add_set_option(*command, line, "key.path=value over the run's config, such as eval.average_k=[3]");
  add_device_option(*command, line);
}

}  // namespace settrain
