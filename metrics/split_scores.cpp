#include "metrics/split_scores.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {

SplitScores samples_of(const SplitScores& split, std::span<const int64_t> samples) {
  const at::Tensor index =
      at::tensor(at::ArrayRef<int64_t>(samples.data(), samples.size()), at::kLong).to(split.labels.device());
  SplitScores some{split.scores.index_select(0, index), split.labels.index_select(0, index)};
  if (split.label_sets.defined()) some.label_sets = split.label_sets.index_select(0, index);
  return some;
}

void check_score_layout(std::string_view name, const at::Tensor& scores) {
  check_shape(name, scores.sizes(), {kAnySize, kAnySize});
  if (scores.numel() == 0) {
    throw ShapeError(
        fmt::format("{}: there is nothing to evaluate, got shape [{}, {}]; expected at least one sample and class",
                    name, scores.size(0), scores.size(1)));
  }
  if (scores.scalar_type() != at::kFloat && scores.scalar_type() != at::kDouble) {
    throw ShapeError(fmt::format("{}: expected float32 or float64, got {}; cast the scores before they are evaluated",
                                 name, c10::toString(scores.scalar_type())));
  }
}

void check_finite(std::string_view name, const at::Tensor& scores) {
  // The extremes are NaN where any score is, and cost no tensor of the scores' size.
  const auto [smallest, largest] = at::aminmax(scores);
  if (std::isfinite(smallest.item<double>()) && std::isfinite(largest.item<double>())) return;
  const int64_t first = at::isfinite(scores).logical_not().flatten().nonzero()[0].item<int64_t>();
  const int64_t sample = first / scores.size(1), category = first % scores.size(1);
  const auto score = scores[sample][category].item<double>();
  const bool may_be_masked = std::isinf(score) && score < 0;
  throw NumericalError(fmt::format(
      "{}: the score of sample {} (its position in the split, from 0) for class {} is {}. The model has diverged: train "
      "with a smaller learning rate, or evaluate an earlier checkpoint{}",
      name, sample, category, score,
      may_be_masked
          ? ". Where it stands for an impossible class, or for the logarithm of 0, take a number far below the "
            "others"
          : ""));
}

void check_scores(std::string_view name, const at::Tensor& scores) {
  check_score_layout(name, scores);
  check_finite(name, scores);
}

void check_label_sets(const at::Tensor& label_sets, const at::Tensor& scores) {
  check_shape("label_sets", label_sets.sizes(), {scores.size(0), scores.size(1)});
  if (label_sets.scalar_type() != at::kBool) {
    throw ShapeError(fmt::format("label_sets: expected bool, got {}", c10::toString(label_sets.scalar_type())));
  }
  if (label_sets.device() != scores.device()) {
    throw ShapeError(fmt::format("label_sets: expected on {}, where the scores are, got on {}", scores.device().str(),
                                 label_sets.device().str()));
  }
  const at::Tensor without = label_sets.any(1).logical_not().nonzero();
  if (without.size(0) > 0) {
    throw ShapeError(fmt::format("label_sets: image {} (from 0) has no label", without[0].item<int64_t>()));
  }
}

void check_split(const SplitScores& split) {
  check_split_layout(split);
  check_finite("scores", split.scores);
}

void check_split_layout(const SplitScores& split) {
  check_score_layout("scores", split.scores);
  const int64_t samples = split.scores.size(0), classes = split.scores.size(1);
  check_shape("labels", split.labels.sizes(), {samples});
  if (split.labels.scalar_type() != at::kLong) {
    throw ShapeError(fmt::format("labels: expected int64, got {}", c10::toString(split.labels.scalar_type())));
  }
  if (split.labels.device() != split.scores.device()) {
    throw ShapeError(fmt::format("labels: expected on {}, where the scores are, got on {}", split.scores.device().str(),
                                 split.labels.device().str()));
  }
  const auto [smallest, largest] = at::aminmax(split.labels);
  for (const int64_t label : {smallest.item<int64_t>(), largest.item<int64_t>()}) {
    if (label < 0 || label >= classes) {
      throw ShapeError(fmt::format("labels: expected values from 0 to {}, one for each column of scores, got {}",
                                   classes - 1, label));
    }
  }
  if (split.label_sets.defined()) check_label_sets(split.label_sets, split.scores);
}

}  // namespace settrain
