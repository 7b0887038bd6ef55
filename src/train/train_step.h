// One optimizer step.
#pragma once

#include <cstdint>
#include <vector>

#include "losses/loss.h"
#include "src/loader/loader.h"
#include "src/optim/optimizer.h"
#include "src/train/computation.h"
#include "src/train/mix.h"
#include "src/train/phase_timer.h"
#include "src/train/step_metrics.h"

namespace settrain {

class Model;

/// What a step did, summed over its samples.
struct StepResult {
  double loss_sum = 0;
  int64_t correct = 0;  // samples whose label, of mixed ones that with the larger share, has the largest score
  int64_t count = 0;
  std::vector<double> measured{};  // in the order of StepMetrics::names()

  StepResult& operator+=(const StepResult& other);
};

/// What a step depends on besides the tensors.
struct StepSettings {
  uint64_t seed;                         // of the loss' noise and of dropout
  int64_t step;                          // global optimizer step, from 0
  double lr;                             // learning rate of this step
  double clip_norm;                      // 0: off
  int64_t epoch = 0;                     // from 0
  StepPhases* phases = nullptr;          // where given, the device is waited for, and the step's times are added
  const StepMetrics* metrics = nullptr;  // where given, what is measured besides loss and top-1
  const MixOptions* mix = nullptr;       // where given and on, images are mixed in pairs
};

/// Forward, loss, backward and update over `batches`, whose gradients are added up: the mean loss is taken over all
/// their samples, or their weights (see Loss::divisor()); without any sample nothing is done. The batches are moved to
/// the model's device one after the other. Throws NumericalError where the loss is not finite: it names the step, the
/// samples, the learning rate, the largest |score| and the first tensor that is not finite. The parameters then are as
/// before the step.
StepResult train_step(Model& model, Loss& loss, Optimizer& optimizer, const std::vector<Batch>& batches,
                      const Computation& computation, const StepSettings& settings);

}  // namespace settrain
