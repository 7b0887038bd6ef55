#include "src/studies/compare/bootstrap_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "src/core/error.h"
#include "src/core/metric_name.h"
#include "src/inference/trained_run.h"
#include "src/train/evaluation.h"

namespace settrain {
namespace {

using CheckpointSplit = std::pair<std::string, std::string>;  // "best-val-top5", "test"

// The images of a split, without their pixels.
struct Images {
  std::vector<int64_t> ids, labels;

  bool operator==(const Images&) const = default;
};

struct EvaluatedRun {
  const ComparedRun* run = nullptr;
  std::string digest;  // of the data set
  std::map<std::string, Images> images;
  std::map<CheckpointSplit, ScoredRun> scores;
};

EvaluatedRun evaluate(const Registries& registries, at::Device device, const ComparedRun& run,
                      const std::set<CheckpointSplit>& wanted, ProgressBar& bar) {
  std::vector<std::string> names;
  for (const auto& [name, split] : wanted) names.push_back(name);
  TrainedRun trained = open_trained_run(registries, run.folder, names, device);
  Experiment& experiment = trained.experiment;
  EvaluatedRun result;
  result.run = &run;
  result.digest = experiment.dataset.digest;
  auto checkpoint = trained.checkpoints.begin();
  for (const auto& [name, split] : wanted) {
    load_weights(experiment, *checkpoint++);
    const Split& images = split_named(experiment.dataset, split);
    result.images[split] = {images.ids, images.labels};
    JudgedScores scores = score_with_thresholds(experiment, split, bar);
    result.scores[{name, split}] = {nullptr, std::move(scores.split), std::move(scores.thresholds),
                                    std::move(scores.calibration)};
  }
  const std::shared_ptr<const Evaluator> evaluator = std::move(experiment.evaluator);
  for (auto& [place, scored] : result.scores) scored.evaluator = evaluator;
  return result;
}

void refuse_other_images(const EvaluatedRun& first, const EvaluatedRun& second) {
  if (first.digest == second.digest && first.images == second.images) return;
  throw RunError(fmt::format(
      "'{}' and '{}' were tested on other images or labels (digests of their data: {} and {}): a paired bootstrap needs "
      "the same; --no-bootstrap compares their results alone",
      first.run->folder.string(), second.run->folder.string(), first.digest, second.digest));
}

std::set<CheckpointSplit> needed(const ComparedRun& run, const std::vector<MetricComparison>& comparisons) {
  std::set<CheckpointSplit> places;
  for (const MetricComparison& comparison : comparisons) {
    places.emplace(checkpoint_for(run, comparison.metric).name, split_of_metric(comparison.metric));
  }
  return places;
}

const ScoredRun& scores_for(const EvaluatedRun& evaluated, const std::string& metric) {
  return evaluated.scores.at({checkpoint_for(*evaluated.run, metric).name, split_of_metric(metric)});
}

// Of setting `place` against the first.
void add_pair(const EvaluatedRun& first, const EvaluatedRun& second, size_t place, const BootstrapOptions& options,
              ProgressBar& bar, std::vector<MetricComparison>& comparisons) {
  // Metrics of the same checkpoints are computed from the same resamples.
  std::map<std::pair<const ScoredRun*, const ScoredRun*>, std::vector<MetricComparison*>> groups;
  for (MetricComparison& comparison : comparisons) {
    groups[{&scores_for(first, comparison.metric), &scores_for(second, comparison.metric)}].push_back(&comparison);
  }
  for (const auto& [scores, members] : groups) {
    std::vector<std::string> metrics;
    for (const MetricComparison* member : members) {
      metrics.push_back(name_of_metric(member->metric));
      const std::string size = size_metric(member->metric);
      if (!size.empty()) metrics.push_back(name_of_metric(size));
    }
    const auto intervals = paired_bootstrap(*scores.first, *scores.second, metrics, options,
                                            fmt::format("[compare] bootstrap, seed {}", first.run->seed), bar);
    auto next = intervals.begin();
    for (MetricComparison* member : members) {
      SeedBootstrap bootstrap{first.run->seed, scores.first->split.labels.size(0), options.resamples, *next++, {}};
      if (!size_metric(member->metric).empty()) bootstrap.size_interval = *next++;
      member->differences[place - 1].bootstraps.push_back(bootstrap);
    }
  }
}

const ComparedRun* with_seed(const Setting& setting, int64_t seed) {
  const auto found =
      std::find_if(setting.runs.begin(), setting.runs.end(), [&](const auto& run) { return run.seed == seed; });
  return found == setting.runs.end() ? nullptr : &*found;
}

}  // namespace

void add_bootstraps(const Registries& registries, at::Device device, const std::vector<Setting>& settings,
                    BootstrapPairs pairs, const BootstrapOptions& options, ProgressBar& bar,
                    std::vector<MetricComparison>& comparisons) {
  for (const ComparedRun& run : settings.front().runs) {
    std::optional<EvaluatedRun> first;
    for (size_t place = 1; place < settings.size(); ++place) {
      const ComparedRun* other = with_seed(settings[place], run.seed);
      const size_t shared = comparisons.front().differences[place - 1].seeds.size();
      if (!other || (pairs == BootstrapPairs::kOneSharedSeed && shared != 1)) continue;
      if (!first) first = evaluate(registries, device, run, needed(run, comparisons), bar);
      const EvaluatedRun second = evaluate(registries, device, *other, needed(*other, comparisons), bar);
      refuse_other_images(*first, second);
      add_pair(*first, second, place, options, bar, comparisons);
    }
  }
}

}  // namespace settrain
