#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/settrain/command_line.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/studies/compare/bootstrap.h"
#include "src/train/compute_policy.h"
#include "src/train/experiment_schema.h"

namespace settrain {
namespace {

struct CompareArguments {
  std::vector<std::string> runs, metrics;
  bool bootstrap = false, no_bootstrap = false, json = false;
  BootstrapOptions options{};
};

int compare_runs(const CommandLine& line, const CompareArguments& arguments) {
  catch_interrupts();
  const at::Device device = find_device(line.device);
  const auto settings = group_runs(read_runs(experiment_schema(line.registries), find_runs(arguments.runs)));
  if (arguments.bootstrap && settings.size() < 2) {
    throw ConfigError("--bootstrap compares two settings, and these runs are all of one");
  }
  std::vector<MetricComparison> comparisons;
  for (const std::string& metric : choose_metrics(settings, arguments.metrics)) {
    comparisons.push_back(compare_metric(settings, metric));
  }
  if (!arguments.no_bootstrap) {
    ProgressBar bar;
    const auto pairs = arguments.bootstrap ? BootstrapPairs::kAll : BootstrapPairs::kOneSharedSeed;
    add_bootstraps(line.registries, device, settings, pairs, arguments.options, bar, comparisons);
  }
  std::cout << (arguments.json ? comparison_json(settings, comparisons).dump(1) + "\n"
                               : format_comparison(settings, comparisons));
  return kSuccess;
}

}  // namespace

void add_compare_command(CLI::App& app, CommandLine& line) {
  const auto [command, arguments] = add_subcommand<CompareArguments>(
      app, line, "compare", compare_runs,
      "Compares settings over seeds: the keys that differ, means and differences with 95 % intervals");
  command
      ->add_option("runs", arguments->runs,
                   "Runs' folders, and folders that directly hold some; runs that differ in their seed alone are one "
                   "setting, and the first one's is what the others are compared with")
      ->required();
  command
      ->add_option(
          "--metric", arguments->metrics,
          "test/macro_top5; may be given several times; all: every one of the test split. Without it those that "
          "the runs selected on, on the test split")
      ->allow_extra_args(false);
  CLI::Option* bootstrap = command->add_flag(
      "--bootstrap", arguments->bootstrap,
      "Evaluates the checkpoints again and resamples the test images for an interval of the difference of two runs "
      "of one seed; by default only for settings that share a single seed");
  command->add_flag("--no-bootstrap", arguments->no_bootstrap, "Evaluates nothing")->excludes(bootstrap);
  add_integer(*command, "--resamples", arguments->options.resamples, 20, 1000000,
              "How often the bootstrap draws images");
  command->add_option("--seed", arguments->options.seed, "Of the bootstrap")->capture_default_str();
  command->add_flag("--json", arguments->json, "Prints JSON instead of tables");
  add_device_option(*command, line);
}

}  // namespace settrain
