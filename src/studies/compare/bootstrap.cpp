#include "src/studies/compare/bootstrap.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/random.h"

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
  if (first.split.labels.sizes() != second.split.labels.sizes() ||
      !at::equal(first.split.labels, second.split.labels.to(first.split.labels.device()))) {
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

}  // namespace settrain
