#include "src/studies/compare/bootstrap.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/metric_name.h"
#include "src/core/random.h"
#include "src/inference/trained_run.h"
#include "src/train/evaluation.h"

namespace settrain {
namespace {

double value_of(const EvaluationResult& result, const std::string& metric) {
  for (const MetricValue& value : result.values) {
    if (value.name == metric) return value.value;
  }
  throw std::invalid_argument("the evaluator has no metric " + metric);
}

ResultsOfSamples prepare(const ScoredRun& run) {
  return run.evaluator->prepare(run.split, run.threshold_scores ? &*run.threshold_scores : nullptr,
                                run.calibration ? &*run.calibration : nullptr);
}

using CheckpointSplit = std::pair<std::string, std::string>;  // "best-val-top5", "test"

struct EvaluatedRun {
  const ComparedRun* run = nullptr;
  std::map<std::string, std::string> digests;  // of the splits, see digest_of()
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
  auto checkpoint = trained.checkpoints.begin();
  for (const auto& [name, split] : wanted) {
    load_weights(experiment, *checkpoint++);
    result.digests[split] = split_named(experiment.dataset, split).digest;
    JudgedScores scores = score_with_thresholds(experiment, split, bar);
    result.scores[{name, split}] = {nullptr, std::move(scores.split), std::move(scores.thresholds),
                                    std::move(scores.calibration)};
  }
  const std::shared_ptr<const Evaluator> evaluator = std::move(experiment.evaluator);
  for (auto& [place, scored] : result.scores) scored.evaluator = evaluator;
  return result;
}

void refuse_other_images(const EvaluatedRun& first, const EvaluatedRun& second) {
  for (const auto& [split, digest] : first.digests) {
    const auto other = second.digests.find(split);
    if (other == second.digests.end() || other->second == digest) continue;
    throw RunError(fmt::format(
        "'{}' and '{}' were tested on other images or labels (digests of {}: {} and {}): a paired bootstrap needs "
        "the same; --no-bootstrap compares their results alone",
        first.run->folder.string(), second.run->folder.string(), split, digest, other->second));
  }
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

// Adds the bootstraps of two runs, of the first setting and of setting `place`.
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

// Whether both are undefined, or have the same values, on any device.
bool is_equal(const at::Tensor& first, const at::Tensor& second) {
  if (!first.defined() || !second.defined()) return first.defined() == second.defined();
  return first.sizes() == second.sizes() && at::equal(first, second.to(first.device()));
}

const ComparedRun* with_seed(const Setting& setting, int64_t seed) {
  const auto found =
      std::find_if(setting.runs.begin(), setting.runs.end(), [&](const auto& run) { return run.seed == seed; });
  return found == setting.runs.end() ? nullptr : &*found;
}

}  // namespace

at::Tensor resample_indices(uint64_t seed, int64_t resample, int64_t images) {
  at::Tensor indices = at::empty({images}, at::kLong);
  auto* out = indices.mutable_data_ptr<int64_t>();
  const auto n = static_cast<uint32_t>(images);
  for (int64_t i = 0; i < images; ++i) {
    const auto words =
        random_words(seed, Stream::kBootstrap, static_cast<uint32_t>(i / 2), static_cast<uint32_t>(resample));
    out[i] = i % 2 == 0 ? uniform_below(words[0], words[1], n) : uniform_below(words[2], words[3], n);
  }
  return indices;
}

double percentile(std::vector<double> values, double share) {
  if (std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); })) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  if (below + 1 >= values.size()) return values.back();
  return values[below] + (place - static_cast<double>(below)) * (values[below + 1] - values[below]);
}

std::vector<BootstrapInterval> paired_bootstrap(const ScoredRun& first, const ScoredRun& second,
                                                const std::vector<std::string>& metrics,
                                                const BootstrapOptions& options, const std::string& stage,
                                                ProgressBar& bar) {
  if (!is_equal(first.split.labels, second.split.labels) ||
      !is_equal(first.split.label_sets, second.split.label_sets)) {
    throw ShapeError("a paired bootstrap needs two runs with the same labels");
  }
  const int64_t images = first.split.labels.size(0);
  const ResultsOfSamples first_results = prepare(first), second_results = prepare(second);
  const auto differences_on = [&](const at::Tensor& samples) {
    const auto on_device = [&](const ScoredRun& run) {
      return samples.defined() ? samples.to(run.split.scores.device()) : samples;
    };
    const EvaluationResult ours = first_results(on_device(first)), theirs = second_results(on_device(second));
    std::vector<double> differences;
    for (const std::string& metric : metrics) differences.push_back(value_of(theirs, metric) - value_of(ours, metric));
    return differences;
  };

  const std::vector<double> measured = differences_on({});
  std::vector<std::vector<double>> resampled(metrics.size());
  Progress progress;
  progress.stage = stage;
  progress.total = options.resamples * images;
  for (int64_t r = 0; r < options.resamples; ++r) {
    const std::vector<double> values = differences_on(resample_indices(options.seed, r, images));
    for (size_t m = 0; m < metrics.size(); ++m) resampled[m].push_back(values[m]);
    progress.done += images;
    bar.update(progress);
    throw_if_interrupted();
  }
  bar.hide();
  std::vector<BootstrapInterval> intervals;
  for (size_t m = 0; m < metrics.size(); ++m) {
    intervals.push_back({measured[m], percentile(resampled[m], 0.025), percentile(resampled[m], 0.975)});
  }
  return intervals;
}

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
