#include "src/train/train_step.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "models/model.h"
#include "src/optim/clip.h"
#include "src/train/aten_seed.h"
#include "src/train/non_finite.h"

namespace settrain {

StepResult& StepResult::operator+=(const StepResult& other) {
  loss_sum += other.loss_sum;
  correct += other.correct;
  count += other.count;
  measured.resize(std::max(measured.size(), other.measured.size()));
  for (size_t i = 0; i < other.measured.size(); ++i) measured[i] += other.measured[i];
  return *this;
}

StepResult train_step(Model& model, Loss& loss, Optimizer& optimizer, const std::vector<Batch>& batches,
                      const Computation& computation, const StepSettings& settings) {
  int64_t count = 0;
  double divisor = 0;
  for (const Batch& batch : batches) {
    count += batch.size();
    if (batch.size() > 0) divisor += loss.divisor(batch.labels, settings.epoch);
  }
  if (count == 0) return {};
  if (divisor == 0) divisor = 1;  // no sample has a weight, and every gradient is 0
  const StepMetrics* metrics = settings.metrics && !settings.metrics->names().empty() ? settings.metrics : nullptr;

  // Dropout draws from ATen's own generator: tied to the step, it repeats after a resume.
  seed_aten(settings.seed, kSeedOfStep, settings.step);
  model.train();
  PhaseTimer timer(settings.phases, computation.device);
  optimizer.zero_grad();
  timer.end(&StepPhases::update);
  StepResult result;
  for (const Batch& batch : batches) {
    if (batch.size() == 0) continue;
    LossInput input;
    input.labels = batch.labels.to(computation.device, /*non_blocking=*/true);
    if (batch.set_offsets.defined()) {
      input.label_sets = {batch.set_offsets.to(computation.device, /*non_blocking=*/true),
                          batch.set_classes.to(computation.device, /*non_blocking=*/true)};
    }
    input.sample_ids = batch.sample_ids;
    input.epoch = settings.epoch;
    input.noise_key = {settings.seed, settings.step, /*first_position=*/result.count};
    std::optional<MixedBatch> mixed;
    if (settings.mix && settings.mix->is_on()) {
      mixed = mix(*settings.mix, as_input(batch.images, computation), input.labels,
                  {settings.seed, settings.step, &batch - batches.data()});
    }
    input.output = forward(model, mixed ? mixed->images : batch.images, computation);
    const LossValue value = mixed ? mixed_loss(loss, input, *mixed) : loss(input);
    if (mixed && mixed->share < 0.5) input.labels = mixed->partner_labels;
    if (metrics) metrics->watch(input.output);
    timer.end(&StepPhases::forward);

    // The mean over the whole step, whatever its batches' sizes.
    (value.sum / divisor).backward();
    timer.end(&StepPhases::backward);

    // All numbers in one wait for the device, with the gradients already under way.
    const at::Tensor correct = input.output.prediction().argmax(1).eq(input.labels).sum();
    at::Tensor numbers = at::stack({value.sum.detach().to(at::kDouble), correct.to(at::kDouble)});
    if (metrics) numbers = at::cat({numbers, metrics->sums(input.output, input.labels)});
    numbers = numbers.cpu();
    const double* const read = numbers.const_data_ptr<double>();
    if (!std::isfinite(read[0])) throw_non_finite(model, input, value, settings);
    result += {read[0], static_cast<int64_t>(read[1]), batch.labels.size(0), {read + 2, read + numbers.numel()}};
    timer.end(&StepPhases::forward);
  }
  if (settings.clip_norm > 0) clip_gradients(optimizer.parameters(), settings.clip_norm);
  optimizer.step(settings.lr);
  loss.update(settings.lr);
  timer.end(&StepPhases::update);
  return result;
}

}  // namespace settrain
