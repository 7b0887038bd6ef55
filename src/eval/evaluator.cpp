#include "src/eval/evaluator.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/topk.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "metrics/entries.h"
#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

/// The `count` largest of `values` [n], summed; a fraction of a value where count is not whole.
double sum_of_largest(const at::Tensor& values, double count) {
  const auto whole = static_cast<int64_t>(std::floor(count));
  const auto taken = static_cast<int64_t>(std::ceil(count));
  const at::Tensor largest = std::get<0>(at::topk(values, taken));
  const double sum = largest.narrow(0, 0, whole).sum(at::kDouble).item<double>();
  return taken == whole ? sum : sum + (count - static_cast<double>(whole)) * largest[whole].item<double>();
}

}  // namespace

ScoreCollector::ScoreCollector(int64_t samples, int64_t classes, at::Device device, at::ScalarType dtype,
                               bool has_label_sets)
    : split_{at::empty({samples, classes}, at::TensorOptions(device).dtype(dtype)),
             at::empty({samples}, at::TensorOptions(device).dtype(at::kLong))} {
  if (has_label_sets) split_.label_sets = at::empty({samples, classes}, at::TensorOptions(device).dtype(at::kBool));
}

void ScoreCollector::add(const at::Tensor& scores, const at::Tensor& labels, const at::Tensor& label_sets) {
  const int64_t samples = split_.scores.size(0);
  check_shape("scores of a batch", scores.sizes(), {kAnySize, split_.scores.size(1)});
  check_shape("labels of a batch", labels.sizes(), {scores.size(0)});
  if (filled_ + scores.size(0) > samples) {
    throw ShapeError(
        fmt::format("scores of a split: expected {} samples, got at least {}; the loader must give every sample once",
                    samples, filled_ + scores.size(0)));
  }
  split_.scores.narrow(0, filled_, scores.size(0)).copy_(scores.detach());
  split_.labels.narrow(0, filled_, scores.size(0)).copy_(labels);
  if (split_.label_sets.defined()) {
    check_shape("label sets of a batch", label_sets.sizes(), {scores.size(0), scores.size(1)});
    split_.label_sets.narrow(0, filled_, scores.size(0)).copy_(label_sets);
  }
  filled_ += scores.size(0);
}

SplitScores ScoreCollector::finish(int64_t left_out) const {
  const int64_t expected = split_.scores.size(0) - left_out;
  if (filled_ != expected) {
    throw ShapeError(fmt::format(
        "scores of a split: expected {} samples, got {}; the loader must give every sample once", expected, filled_));
  }
  SplitScores added{split_.scores.narrow(0, 0, filled_), split_.labels.narrow(0, 0, filled_)};
  if (split_.label_sets.defined()) added.label_sets = split_.label_sets.narrow(0, 0, filled_);
  check_scores("scores", added.scores);
  return added;
}

Evaluator::Evaluator(const MetricRegistry& registry, const config::Config& config, MetricContext context)
    : context_(std::move(context)) {
  for (const MetricEntry& entry : registry.entries()) metrics_.push_back(entry.make(config));
}

Evaluator::Evaluator(std::vector<std::unique_ptr<Metric>> metrics, MetricContext context)
    : metrics_(std::move(metrics)), context_(std::move(context)) {}

std::vector<MetricValue> Evaluator::facts() const {
  std::vector<MetricValue> facts;
  for (const auto& metric : metrics_) append(facts, metric->facts());
  return facts;
}

EvaluationResult Evaluator::evaluate(const SplitScores& split, const at::Tensor* threshold_scores,
                                     const SplitScores* calibration) const {
  return prepare(split, threshold_scores, calibration)({});
}

ResultsOfSamples Evaluator::prepare(const SplitScores& split, const at::Tensor* threshold_scores,
                                    const SplitScores* calibration) const {
  const at::NoGradGuard no_grad;
  check_split(split);
  check_shape("training counts of the classes", std::array{std::ssize(context_.train_counts)}, {split.scores.size(1)});
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
  for (const auto& metric : metrics_) {
    if (!metric->facts().empty()) prepared.push_back(metric->prepare(split, context));
  }
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

std::vector<MetricValue> bayes_accuracy(const at::Tensor& probabilities, const config::Integers& top_k,
                                        const config::Reals& average_k) {
  check_scores("known probabilities", probabilities);
  const int64_t samples = probabilities.size(0), classes = probabilities.size(1);
  std::vector<MetricValue> values;
  for (const int64_t k : top_k) {
    const at::Tensor largest = std::get<0>(at::topk(probabilities, std::min(k, classes), 1));
    values.push_back({topk_name(k), largest.sum(at::kDouble).item<double>() / static_cast<double>(samples)});
  }
  for (const double k : average_k) {
    const double size = std::min(k, static_cast<double>(classes));
    const double sum = sum_of_largest(probabilities.flatten(), size * static_cast<double>(samples));
    const MetricValue mean_size = average_k_size(k, size);
    values.push_back({.name = average_k_name(k), .value = sum / static_cast<double>(samples), .size = mean_size.name});
    values.push_back(mean_size);
  }
  return values;
}

}  // namespace settrain
