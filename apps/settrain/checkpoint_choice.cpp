#include "apps/settrain/checkpoint_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/config/load.h"
#include "src/core/error.h"
#include "src/inference/trained_run.h"
#include "src/train/experiment_schema.h"

namespace settrain {

void CheckpointChoice::add_options(CLI::App& command) {
  CLI::Option* by_metric = command.add_option(
      "--metric", metric,
      "val/top5: the best checkpoint by that metric, of those that the run selected on; needed where there are several");
  command.add_option("--checkpoint", checkpoint, "last, or best-val-top5: a name in the run's checkpoints/")
      ->excludes(by_metric);
}

std::filesystem::path chosen_checkpoint(const CommandLine& line, const CheckpointChoice& choice,
                                        const RunFolder& folder) {
  if (!choice.checkpoint.empty()) return folder.checkpoint(choice.checkpoint);
  if (!choice.metric.empty()) return folder.checkpoint(folder.selected_checkpoint(choice.metric).stem().string());
  const config::Config config = config::load_recorded(experiment_schema(line.registries), folder.config());
  const auto& select = config.get<config::Texts>("select");
  const auto files = chosen_checkpoints(folder, select);
  warn_of_last_weights(folder, select, files);
  if (files.size() == 1) return files.front();
  throw ConfigError(fmt::format("'{}' has a best checkpoint for each of several metrics: say --metric {}",
                                folder.path().string(), fmt::join(select, ", or --metric ")));
}

}  // namespace settrain
