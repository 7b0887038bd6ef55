#include "src/studies/compare/bootstrap.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/streams.h"

namespace settrain {
namespace {

// Other digits of pi than those of src/core/streams.h. Item = pair of images, block = resample.
constexpr auto kBootstrapStream = static_cast<Stream>(0xB8E1AFED6A267E96);

SplitScores rows_of(const SplitScores& split, const at::Tensor& indices) {
  const at::Tensor on_device = indices.to(split.scores.device());
  return {at::index_select(split.scores, 0, on_device), at::index_select(split.labels, 0, on_device)};
}

double value_of(const EvaluationResult& result, const std::string& metric) {
  for (const MetricValue& value : result.values) {
    if (value.name == metric) return value.value;
  }
  throw std::invalid_argument("the evaluator has no metric " + metric);
}

// A value a metric.
std::vector<double> evaluate(const ScoredRun& run, const SplitScores& split, const std::vector<std::string>& metrics) {
  const EvaluationResult result =
      run.evaluator->evaluate(split, run.threshold_scores ? &*run.threshold_scores : nullptr);
  std::vector<double> values;
  for (const std::string& metric : metrics) values.push_back(value_of(result, metric));
  return values;
}

}  // namespace

at::Tensor resample_indices(uint64_t seed, int64_t resample, int64_t images) {
  at::Tensor indices = at::empty({images}, at::kLong);
  auto* out = indices.mutable_data_ptr<int64_t>();
  const auto n = static_cast<uint32_t>(images);
  for (int64_t i = 0; i < images; ++i) {
    const auto words =
        random_words(seed, kBootstrapStream, static_cast<uint32_t>(i / 2), static_cast<uint32_t>(resample));
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
  const at::NoGradGuard no_grad;
  if (first.split.labels.sizes() != second.split.labels.sizes() ||
      !at::equal(first.split.labels, second.split.labels.to(first.split.labels.device()))) {
    throw ShapeError("a paired bootstrap needs two runs with the same labels");
  }
  const int64_t images = first.split.labels.size(0);
  const auto differences_on = [&](const SplitScores& ours, const SplitScores& theirs) {
    std::vector<double> values = evaluate(second, theirs, metrics);
    const std::vector<double> before = evaluate(first, ours, metrics);
    for (size_t m = 0; m < metrics.size(); ++m) values[m] -= before[m];
    return values;
  };

  const std::vector<double> measured = differences_on(first.split, second.split);
  std::vector<std::vector<double>> resampled(metrics.size());
  Progress progress;
  progress.stage = stage;
  progress.total = options.resamples * images;
  for (int64_t r = 0; r < options.resamples; ++r) {
    const at::Tensor indices = resample_indices(options.seed, r, images);
    const std::vector<double> values = differences_on(rows_of(first.split, indices), rows_of(second.split, indices));
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
