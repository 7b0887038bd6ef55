#include "src/inference/trained_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
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
#include "src/train/selection.h"

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

// The splits whose images chose epochs of the run until that checkpoint, each with a metric that they did it by.
std::map<std::string, std::string> splits_that_chose(const Experiment& run, const Checkpoint& weights) {
  const std::string prefix = selection_tensor("");
  std::map<std::string, std::string> chose;
  for (const auto& [name, tensor] : weights.tensors) {
    if (!name.starts_with(prefix)) continue;
    const std::string metric = name.substr(prefix.size());
    for (const std::string& split : splits_behind(metric, run.config, run.dataset.calibration.size() > 0)) {
      chose.emplace(split, metric);
    }
  }
  return chose;
}

}  // namespace

void check_settings(const config::Config& config, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const std::string path = setting.substr(0, setting.find('='));
    const bool is_read = path.starts_with("data.") || path == "run.threads";
    const bool is_evaluated =
        path.starts_with("eval.") || path == "data.eval_batch_size" || path == "data.on_bad_image";
    if (is_evaluated || (is_read && changes_no_number(config, path))) continue;
    throw ConfigError(fmt::format(
        "--set {}: a run is evaluated as it was trained; what may be set are eval.*, data.root, data.workers, "
        "data.expected, data.on_bad_image, data.eval_batch_size and run.threads",
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
  return checkpoint;
}

SplitScores labelled_scores(const Experiment& run, const std::string& split, ProgressBar& bar) {
  const SplitScores scores = score_split(run, split_named(run.dataset, split), run.eval.view_use(), bar);
  return {scores.scores.cpu().mul(run.loss->score_scale()), scores.labels.cpu()};
}

std::string why_no_guarantee(const Experiment& run, const Checkpoint& weights, const std::string& split,
                             bool with_test) {
  if (split == "train") return "the model was trained on these images";
  const std::map<std::string, std::string> chose = splits_that_chose(run, weights);
  std::vector<std::string> reasons;
  if (split == "val") {
    reasons.emplace_back(
        "these validation images may have chosen the epoch or a setting; data.calibration_share keeps some apart");
  } else if (const auto found = chose.find(split); found != chose.end()) {
    reasons.push_back(
        fmt::format("`select` has {}, so these {} images may have chosen the epoch", found->second, split));
  }
  const auto is_other = [&](const auto& changed) {
    return (changed.first == split && !changed.second) || changed.first.empty();
  };
  if (split == "calibration" && std::ranges::any_of(run.changed_splits, is_other)) {
    reasons.emplace_back(
        "these are not the images that the run kept apart, so some may have chosen the epoch or a setting");
  }
  for (const SharedImages& shared : run.dataset.shared_images) {
    if (shared.split != split && shared.other != split) continue;
    const std::string& beside = shared.split == split ? shared.other : shared.split;
    const bool has_chosen = chose.contains(beside);
    if (beside == "train" || beside == "val" || has_chosen || (beside == "test" && with_test))
      reasons.push_back(shared.count_text());
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

std::string calibration_split(const Dataset& dataset) {
  if (dataset.calibration.size() > 0) return "calibration";
  if (dataset.val.size() > 0) return "val";
  throw ConfigError("the run has no validation images to calibrate rules on; settrain calibrate --scores takes others");
}

}  // namespace settrain
