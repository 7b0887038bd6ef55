// What a loss costs of a training step.
#pragma once

#include <string>
#include <vector>

#include "src/measure/bench/loss_bench.h"
#include "src/train/experiment_schema.h"

namespace settrain {

/// Of one loss, what it takes more than cross-entropy as a share of the whole step with cross-entropy.
struct StepShare {
  std::string loss;
  std::vector<double> seconds;  // of forward and backward, in each round
  std::vector<double> shares;   // in each round
};

struct StepShares {
  int64_t batch = 0, classes = 0;
  std::vector<double> step_seconds;  // in each round
  std::vector<StepShare> losses;
};

/// Steps of `model` on one batch of random images of the size it was made for, and losses on scores of as many rows
/// and classes, all in turns. Those whose cost matters, as far as they are asked for. From then on the process computes
/// as in training. Throws ConfigError where `model` is not there.
StepShares measure_step_shares(const Registries& registries, const LossBenchOptions& options, const std::string& model,
                               int64_t batch, int64_t classes, at::Device device);

}  // namespace settrain
