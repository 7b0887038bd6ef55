#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scatter_add.h>

#include <chrono>

#include "metrics/sets/calibrate.h"
#include "src/core/interrupt.h"
#include "src/measure/bench/speed.h"

namespace settrain {
namespace {

constexpr double kShrink = 0.99, kDeviation = 2, kLabelShift = 8;

template <class Work>
auto timed(std::vector<double>& seconds, const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  auto result = work();
  seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return result;
}

}  // namespace

ScoreFile random_labelled_scores(int64_t images, int64_t classes) {
  at::manual_seed(0);
  const at::Tensor shares = at::pow(kShrink, at::arange(classes, at::kDouble));
  ScoreFile file;
  file.scores.labels = at::multinomial(shares, images, /*replacement=*/true);
  file.scores.scores = at::randn({images, classes}).mul_(kDeviation);
  file.scores.scores.scatter_add_(1, file.scores.labels.unsqueeze(1), at::full({images, 1}, kLabelShift, at::kFloat));
  file.facts.classes = classes;
  for (int64_t c = 0; c < classes; ++c) {
    file.facts.train_counts.push_back(1 + shares[c].mul(1000).item<int64_t>());
    file.facts.superclass_of.push_back(c / 5);
  }
  return file;
}

void measure_sets(const SetRule& rule, const ScoreFile& file, SetTimes& times) {
  throw_if_interrupted();
  const at::Tensor &scores = file.scores.scores, &labels = file.scores.labels;
  const CalibratedRule calibrated =
      timed(times.calibrate, [&] { return calibrate(rule, file.facts, scores, labels, /*seed=*/1); });
  throw_if_interrupted();
  const at::Tensor sets = timed(times.predict, [&] { return sets_of(calibrated, scores); });
  times.mean_size = static_cast<double>(sets.sum().item<int64_t>()) / static_cast<double>(sets.size(0));
}

}  // namespace settrain
