#include "src/inference/trained_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "models/model.h"
#include "models/named_tensors.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/formats/weight_file.h"
#include "src/train/evaluation.h"
#include "src/train/experiment_schema.h"
#include "src/train/identity.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// Whether the key, or each key of the section, changes no result.
bool changes_no_number(const config::Config& config, const std::string& path) {
  const auto& entries = config.entries();
  return std::all_of(entries.begin(), entries.end(), [&](const config::Entry& entry) {
    return entry.key.is_free || (entry.path != path && !entry.path.starts_with(path + "."));
  });
}

// Empty where the checkpoint cannot be read; load_weights() reports that.
RecordedInput input_of(const fs::path& checkpoint) {
  try {
    return recorded_input(WeightFile(checkpoint).contents().metadata, checkpoint.string());
  } catch (const RunError&) {
    return {};
  }
}

}  // namespace

void check_settings(const config::Config& config, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const std::string path = setting.substr(0, setting.find('='));
    const bool is_read = path.starts_with("data.") || path == "run.threads" || path == "run.inference";
    const bool is_evaluated =
        path.starts_with("eval.") || path == "data.eval_batch_size" || path == "data.on_bad_image";
    if (is_evaluated || (is_read && changes_no_number(config, path))) continue;
    throw ConfigError(fmt::format(
        "--set {}: a run is evaluated as it was trained; what may be set are eval.*, data.root, data.workers, "
        "data.expected, data.on_bad_image, data.eval_batch_size, run.threads and run.inference",
        path));
  }
}

std::vector<fs::path> chosen_checkpoints(const RunFolder& folder, const config::Texts& select) {
  std::vector<fs::path> files;
  for (const std::string& metric : select) {
    const auto file = folder.selected_checkpoint(metric);
    if (fs::exists(file)) files.push_back(file);
  }
  if (files.empty()) files.push_back(folder.last_checkpoint());
  return files;
}

void warn_of_last_weights(const RunFolder& folder, const config::Texts& select, const std::vector<fs::path>& files) {
  const bool wants_best =
      std::any_of(select.begin(), select.end(), [](const auto& s) { return s != RunFolder::kLast; });
  if (!wants_best || files != std::vector{folder.last_checkpoint()}) return;
  log::warning(fmt::format("[run] '{}' has no checkpoint that is best by {}: these are its last weights",
                           folder.path().string(), fmt::join(select, ", ")));
}

TrainedRun open_trained_run(const Registries& registries, const fs::path& folder,
                            const std::vector<std::string>& checkpoints, at::Device device,
                            const std::vector<std::string>& settings) {
  const RunFolder run = RunFolder::open_existing(folder);
  const config::Schema schema = experiment_schema(registries);
  // The metrics that the run selected on need not be computed again.
  std::vector<std::string> all_settings = settings;
  all_settings.emplace_back("select=[]");
  config::Config config = config::load_amended(schema, run.config(), all_settings);
  check_settings(config, settings);
  auto select = config::load_recorded(schema, run.config()).get<config::Texts>("select");
  std::vector<fs::path> files;
  for (const std::string& name : checkpoints) files.push_back(run.checkpoint(name));
  if (files.empty()) {
    files = chosen_checkpoints(run, select);
    warn_of_last_weights(run, select, files);
  }
  Experiment experiment =
      make_experiment(registries, std::move(config), device, FirstWeights::kDrawn, nullptr, input_of(files.front()));
  return {std::move(select), std::move(files), std::move(experiment)};
}

Checkpoint load_weights(Experiment& run, const fs::path& file) {
  Checkpoint checkpoint = load_checkpoint(file);
  check_same_model(run, checkpoint);
  check_same_data(run, checkpoint);
  checkpoint.copy_into(checkpoint.weights_prefix(), state_dict(*run.model));
  if (run.train.epochs > 0 && checkpoint.integer("state.step") == 0)
    log::warning(
        fmt::format("[run] '{}' has the weights from before the first step: the run was not trained", file.string()));
  return checkpoint;
}

SplitScores labelled_scores(const Experiment& run, const std::string& split, ProgressBar& bar) {
  const SplitScores scores = score_split(run, split_named(run.dataset, split), run.eval.view_use(), bar);
  return {scores.scores.cpu().mul(run.loss->score_scale()), scores.labels.cpu(),
          scores.label_sets.defined() ? scores.label_sets.cpu() : at::Tensor()};
}

}  // namespace settrain
