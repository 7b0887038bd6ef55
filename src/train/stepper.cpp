#include "src/train/stepper.h"

#include <algorithm>
#include <utility>

#include "models/model.h"
#include "models/named_tensors.h"
#include "src/core/error.h"
#include "src/optim/make_optimizer.h"

namespace settrain {
namespace {

Optimizer::Named trainable(const Model& model) {
  Optimizer::Named parameters;
  for (const auto& item : model.named_parameters()) {
    if (item.value().requires_grad()) parameters.emplace_back(item.key(), item.value());
  }
  return parameters;
}

}  // namespace

Stepper::Stepper(Experiment& run, int64_t steps_per_epoch)
    : run_(run),
      length_{run.train.epochs, steps_per_epoch},
      // Who trains nothing may still want to know what a step costs, which needs a learning rate.
      schedule_(make_schedule(run.config, {std::max<int64_t>(1, run.train.epochs), steps_per_epoch})),
      optimizer_(make_optimizer(run.optimizer, run.config, trainable(*run.model), run.model->head_parameters())),
      metrics_(run.train),
      mix_(run.config.read<MixOptions>("train")) {
  if (run.train.ema_decay > 0) average_.emplace(state_dict(*run.model), run.train.ema_decay);
}

double Stepper::lr(int64_t step) const {
  return run_.config.get<double>("optimizer.lr") * schedule_->factor(step);
}

StepResult Stepper::take(int64_t step, const std::vector<Batch>& batches, StepPhases* phases) {
  const StepSettings settings{.seed = static_cast<uint64_t>(run_.general.seed),
                              .step = step,
                              .lr = lr(step),
                              .clip_norm = run_.train.clip_norm,
                              .epoch = step / length_.steps_per_epoch,
                              .phases = phases,
                              .metrics = &metrics_,
                              .mix = &mix_};
  const StepResult result = train_step(*run_.model, *run_.loss, *optimizer_, batches, run_.computation, settings);
  if (average_ && result.count > 0) average_->update(step);
  return result;
}

std::vector<Batch> next_batches(Loader& loader, int64_t accumulate) {
  std::vector<Batch> batches;
  for (Batch batch; std::ssize(batches) < accumulate && loader.next(batch);) {
    // An epoch's smaller last batch may be one bad image; that a whole batch is, or all there is, says more.
    const bool is_rest = batch.first_position > 0 && std::ssize(batch.skipped) < loader.settings().batch_size;
    if (batch.size() == 0 && !is_rest)
      throw DataError("no image of a training batch could be read; the log names them");
    batches.push_back(std::move(batch));
  }
  return batches;
}

int64_t steps_per_epoch(const Experiment& run, const Loader& loader) {
  return (loader.batches_per_epoch() + run.train.accumulate - 1) / run.train.accumulate;
}

}  // namespace settrain
