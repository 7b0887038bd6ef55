#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/settrain/command_line.h"
#include "src/config/load.h"
#include "src/inference/results.h"
#include "src/train/experiment_schema.h"

namespace settrain {
namespace {

struct EvalArguments {
  std::string run;
  std::vector<std::string> checkpoints;
  bool json = false;
};

// A run is evaluated as it was trained: on its data, with its model.
void refuse_other_settings(const config::Config& config, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const std::string path = setting.substr(0, setting.find('='));
    if (path.starts_with("eval.") || path == "data.eval_batch_size" || config.at(path).key.is_free) continue;
    throw ConfigError(fmt::format(
        "--set {}: a run is evaluated as it was trained; `settrain eval` takes eval.*, data.root, data.workers, "
        "data.eval_batch_size and run.threads",
        path));
  }
}

int evaluate(const CommandLine& line, const EvalArguments& arguments) {
  const at::Device device = find_device(line.device);
  const RunFolder folder = RunFolder::open_existing(arguments.run);
  const config::Schema schema = experiment_schema(line.registries);
  const config::Config recorded = config::load(schema, folder.config(), {});
  // What the run selected on need not be measured again.
  std::vector<std::string> settings = line.settings;
  settings.push_back("select=[]");
  config::Config config = config::load(schema, folder.config(), settings);
  refuse_other_settings(config, line.settings);
  Experiment run = make_experiment(line.registries, std::move(config), device);

  std::vector<std::filesystem::path> files;
  for (const std::string& checkpoint : arguments.checkpoints) files.push_back(folder.checkpoint(checkpoint));
  if (files.empty()) files = chosen_checkpoints(folder, recorded.get<config::Texts>("select"));
  ProgressBar bar;
  const auto results = evaluate_checkpoints(run, files, bar);
  log_skipped_images(run);
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
