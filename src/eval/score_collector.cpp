#include "src/eval/score_collector.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "metrics/checks.h"
#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {

ScoreCollector::ScoreCollector(int64_t samples, int64_t classes, at::Device device, at::ScalarType dtype)
    : split_{at::empty({samples, classes}, at::TensorOptions(device).dtype(dtype)),
             at::empty({samples}, at::TensorOptions(device).dtype(at::kLong))} {}

void ScoreCollector::add(const at::Tensor& scores, const at::Tensor& labels) {
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
  filled_ += scores.size(0);
}

SplitScores ScoreCollector::finish(int64_t left_out) const {
  const int64_t expected = split_.scores.size(0) - left_out;
  if (filled_ != expected) {
    throw ShapeError(fmt::format(
        "scores of a split: expected {} samples, got {}; the loader must give every sample once", expected, filled_));
  }
  const SplitScores added{split_.scores.narrow(0, 0, filled_), split_.labels.narrow(0, 0, filled_)};
  check_scores("scores", added.scores);
  return added;
}

}  // namespace settrain
