#include "src/train/step_loader.h"

#include <algorithm>
#include <utility>

#include "src/core/error.h"

namespace settrain {

StepLoader::StepLoader(const Experiment& run)
    : loader_(training_loader(run.dataset, run.loader, static_cast<uint64_t>(run.general.seed))),
      batches_per_step_(run.train.accumulate * run.group->world_size()) {}

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
    // An epoch's smaller last batch may be one bad image; that a whole batch is, or all there is, says more.
    const bool is_rest = batch.first_position > 0 && std::ssize(batch.skipped) < loader_.settings().batch_size;
    if (batch.size() == 0 && !is_rest)
      throw DataError("no image of a training batch could be read; the log names them");
    step.own.push_back(std::move(batch));
  }
  position_ += step.count;
  return step;
}

int64_t StepLoader::steps_per_epoch() const {
  return (batches_per_epoch() + batches_per_step_ - 1) / batches_per_step_;
}

int64_t StepLoader::samples_per_epoch() const {
  return std::min(loader_.size(), batches_per_epoch() * loader_.settings().batch_size);  // drop_last
}

}  // namespace settrain
