#include "src/train/stepper.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "losses/ops/loss_kernels.h"
#include "models/model.h"
#include "models/named_tensors.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/train/training_checks.h"

namespace settrain {
namespace {

Optimizer::Named trainable(const Model& model) {
  Optimizer::Named parameters;
  for (const auto& item : model.named_parameters()) {
    if (item.value().requires_grad()) parameters.emplace_back(item.key(), item.value());
  }
  return parameters;
}

// The reason why the operations of a step differ from step to step, or cannot be captured; empty where none is known.
std::string obstacle_to_capture(const Experiment& run) {
  if (!run.device.is_cuda()) return "the device is not a GPU";
  if (!has_loss_kernels(run.device)) return "this build has no kernels for the GPU, and noise is drawn on the CPU";
  if (run.config.read<MixOptions>("train").is_on()) return "train.mix draws shares on the CPU";
  if (run.train.gradient_checkpointing) return "train.gradient_checkpointing sets the random generator back";
  if (!run.dataset.train.label_sets.empty()) return "samples have several labels, whose numbers differ";
  if (!run.loss->state().empty()) return "the loss keeps tensors of its own on the CPU";
  if (run.train.accumulate > 1) return "train.accumulate: every batch of a step draws from a seed of its own";
  if (run.group->world_size() > 1) return "several processes talk within a step";
  return "";
}

Capture capture_for(const Experiment& run) {
  const config::Switch wanted = run.train.graph;
  if (wanted == config::Switch::kOff) return {};
  const std::string obstacle = obstacle_to_capture(run);
  if (obstacle.empty()) return cuda_graph_capture(run.device);
  if (wanted == config::Switch::kOn) throw KeyError("train.graph", "on: " + obstacle + "; expected auto or off");
  if (run.device.is_cuda()) log::info("[train] steps are not captured as a CUDA graph: " + obstacle);
  return {};
}

std::optional<int64_t> bucket_bytes(const config::Config& config) {
  if (at::globalContext().deterministicAlgorithms()) return std::nullopt;
  return config.read<ParallelOptions>("parallel").bucket_bytes();
}

}  // namespace

StepLoader::StepLoader(const Experiment& run)
    : loader_(training_loader(run.dataset, run.loader, static_cast<uint64_t>(run.general.seed))),
      batches_per_step_(run.train.accumulate * run.group->world_size()),
      takes_one_image_(run.takes_one_image) {
  check_batches_of_one(run, loader_);
}

void StepLoader::start_epoch(int64_t epoch, int64_t first_batch) {
  loader_.start_epoch(epoch, first_batch);
  position_ = first_batch;
}

StepBatches StepLoader::next() {
  StepBatches step;
  step.count = std::min(batches_per_step_, loader_.batches_per_epoch() - position_);
  const auto& [rank, world] = std::pair(loader_.settings().rank, loader_.settings().world);
  for (int64_t number = rank; number < step.count; number += world) {
    Batch batch;
    loader_.next(batch);
    check_readable(batch);
    if (batch.size() == 1 && !batch.skipped.empty() && !takes_one_image_) {
      loader_.settings().skipped->add_batches_of_one(1);
      batch.images.reset();
      batch.labels.reset();
    }
    step.own.push_back(std::move(batch));
  }
  position_ += step.count;
  return step;
}

// A few bad images may make up a batch. Very many one after the other are no bad images: their folder is gone.
void StepLoader::check_readable(const Batch& batch) {
  constexpr int64_t kMostInARow = 100;
  unread_in_a_row_ = batch.size() > 0 ? 0 : unread_in_a_row_ + std::ssize(batch.skipped);
  if (unread_in_a_row_ < kMostInARow) return;
  throw DataError(fmt::format("{} training images in a row could not be read; the log names them", unread_in_a_row_));
}

int64_t StepLoader::steps_per_epoch() const {
  return (batches_per_epoch() + batches_per_step_ - 1) / batches_per_step_;
}

int64_t StepLoader::samples_per_epoch() const {
  return std::min(loader_.size(), batches_per_epoch() * loader_.settings().batch_size);  // drop_last
}

Stepper::Stepper(Experiment& run, int64_t steps_per_epoch)
    : base_lr_(run.config.get<double>("optimizer.lr")),
      length_{run.train.epochs, steps_per_epoch},
      // Benchmarks run with epochs = 0, but the schedule needs at least 1.
      schedule_(make_schedule(run.config, {std::max<int64_t>(1, run.train.epochs), steps_per_epoch})),
      optimizer_(make_optimizer(run.optimizer, run.config, trainable(*run.model),
                                {run.model->head_parameters(), run.model->layers_below_head()})),
      train_step_(*run.model, *run.loss, *optimizer_, run.policy, *run.group,
                  {.seed = static_cast<uint64_t>(run.general.seed),
                   .clip_norm = run.train.clip_norm,
                   .metrics = StepMetrics(run.train),
                   .mix = run.config.read<MixOptions>("train"),
                   .capture = capture_for(run),
                   .bucket_bytes = bucket_bytes(run.config),
                   .sync_batch_norm = run.config.get<bool>("model.sync_batch_norm")}) {
  if (run.train.ema_decay > 0) average_.emplace(state_dict(*run.model), run.train.ema_decay, run.train.ema_warmup);
}

double Stepper::lr(int64_t step) const {
  return base_lr_ * schedule_->factor(step);
}

LaunchedStep Stepper::take(int64_t step, const StepBatches& batches, StepPhases* phases) {
  const StepNumber number{step, lr(step), step / length_.steps_per_epoch, batches.count, schedule_->factor(step)};
  LaunchedStep launched = train_step_.launch(batches.own, number, phases);
  if (average_ && launched.count() > 0) average_->update(step);
  return launched;
}

}  // namespace settrain
