#include "src/eval/evaluator.h"

#include <ATen/core/grad_mode.h>

#include <array>
#include <iterator>
#include <utility>

#include "metrics/checks.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

template <class T>
void append(std::vector<T>& all, std::vector<T>&& more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::vector<std::unique_ptr<Metric>> make_metrics(const MetricRegistry& registry, const config::Config& config) {
  std::vector<std::unique_ptr<Metric>> metrics;
  for (const MetricEntry& entry : registry.entries()) metrics.push_back(entry.make(config));
  return metrics;
}

}  // namespace

Evaluator::Evaluator(const MetricRegistry& registry, const config::Config& config, MetricContext context)
    : Evaluator(make_metrics(registry, config), std::move(context)) {}

Evaluator::Evaluator(std::vector<std::unique_ptr<Metric>> metrics, MetricContext context)
    : metrics_(std::move(metrics)), context_(std::move(context)) {}

std::vector<std::string> Evaluator::names() const {
  std::vector<std::string> names;
  for (const auto& metric : metrics_) append(names, metric->names());
  return names;
}

EvaluationResult Evaluator::evaluate(const SplitScores& split, const at::Tensor* threshold_scores,
                                     const SplitScores* calibration) const {
  return prepare(split, threshold_scores, calibration)({});
}

ResultsOfSamples Evaluator::prepare(const SplitScores& split, const at::Tensor* threshold_scores,
                                    const SplitScores* calibration) const {
  const at::NoGradGuard no_grad;
  check_split(split);
  check_shape("training counts of the classes", std::array{static_cast<int64_t>(context_.train_counts.size())},
              {split.scores.size(1)});
  MetricContext context = context_;
  context.threshold_scores = threshold_scores;
  if (threshold_scores) {
    check_scores("threshold scores", *threshold_scores);
    check_shape("threshold scores", threshold_scores->sizes(), {kAnySize, split.scores.size(1)});
  }
  context.calibration = calibration;
  if (calibration) {
    check_split(*calibration);
    check_shape("calibration scores", calibration->scores.sizes(), {kAnySize, split.scores.size(1)});
  }
  std::vector<ResultsOfSamples> prepared;
  for (const auto& metric : metrics_) prepared.push_back(metric->prepare(split, context));
  return [prepared = std::move(prepared)](const at::Tensor& samples) {
    const at::NoGradGuard no_grad_here;
    EvaluationResult result;
    for (const ResultsOfSamples& results : prepared) {
      EvaluationResult part = results(samples);
      append(result.values, std::move(part.values));
      append(result.set_sizes, std::move(part.set_sizes));
    }
    return result;
  };
}

}  // namespace settrain
