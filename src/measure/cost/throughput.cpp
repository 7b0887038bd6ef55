#include "src/measure/cost/throughput.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "src/core/interrupt.h"

namespace settrain {
namespace {

using Clock = std::chrono::steady_clock;

// Moves the batches to the device once: moving them anew in each step is the loader's work, not the network's.
StepBatches on(at::Device device, StepBatches batches) {
  for (Batch& batch : batches.own) {
    if (batch.size() == 0) continue;
    batch.images = batch.images.to(device);
    batch.labels = batch.labels.to(device);
    if (!batch.set_offsets.defined()) continue;
    batch.set_offsets = batch.set_offsets.to(device);
    batch.set_classes = batch.set_classes.to(device);
  }
  return batches;
}

void add(StepTimes& times, Clock::time_point start, int64_t images) {
  times.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  times.images += images;
}

}  // namespace

std::vector<std::string> random_images(const ModelEntry& model, int64_t batch, int64_t size, int64_t classes) {
  return {"data.name=synthetic",
          fmt::format("data.image_size={}", size > 0 ? size : model.usual.height),
          fmt::format("data.num_classes={}", classes > 0 ? classes : model.usual.num_classes),
          fmt::format("data.train_size={}", batch),
          fmt::format("data.batch_size={}", batch),
          "data.val_size=1",
          "data.test_size=1",
          "train.epochs=1",  // of one step, again and again
          "optimizer.lr=0.001",
          "eval.top_k=[1]",
          "eval.average_k=[]"};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<double> ratios(const std::vector<double>& first, const std::vector<double>& second) {
  std::vector<double> result(std::min(first.size(), second.size()));
  for (size_t round = 0; round < result.size(); ++round) result[round] = first[round] / second[round];
  return result;
}

double StepTimes::images_per_second() const {
  return static_cast<double>(images) / std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

StepTimes& StepTimes::operator+=(const StepTimes& other) {
  seconds.insert(seconds.end(), other.seconds.begin(), other.seconds.end());
  images += other.images;
  phases.forward += other.phases.forward;
  phases.backward += other.phases.backward;
  phases.update += other.phases.update;
  return *this;
}

double StepTimes::mean() const {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
}

Throughput::Throughput(Experiment& run, OnSignal on_signal)
    : run_(run), on_signal_(on_signal), loader_(run), stepper_(run, loader_.steps_per_epoch()) {
  loader_.start_epoch(epoch_);
  cached_ = on(run.device, next());
}

void Throughput::take_from_loader(int64_t steps, int64_t warm_up, StepTimes& times) {
  for (int64_t i = 0; i < steps; ++i) {
    if (i <= warm_up) settle();  // steps that are not measured end before those that are
    const auto start = Clock::now();
    const int64_t images = take(next());
    if (i + 1 == steps) settle();
    if (i >= warm_up) add(times, start, images);
  }
}

void Throughput::take_cached(int64_t steps, StepTimes& times) {
  // A GPU would be waited for between the phases, which costs time: it takes the steps again for them.
  const bool apart = run_.device.is_cuda();
  settle();
  for (int64_t i = 0; i < steps; ++i) {
    const auto start = Clock::now();
    const int64_t images = take(cached_, apart ? nullptr : &times.phases);
    if (i + 1 == steps) settle();
    add(times, start, images);
  }
  for (int64_t i = 0; apart && i < steps; ++i) take(cached_, &times.phases);
}

StepBatches Throughput::next() {
  StepBatches batches = loader_.next();
  if (batches.count > 0) return batches;
  loader_.start_epoch(++epoch_);
  return loader_.next();
}

int64_t Throughput::take(const StepBatches& batches, StepPhases* phases) {
  // The number of the step goes round, so that the schedule has a learning rate for it.
  LaunchedStep step = stepper_.take(step_++ % std::max<int64_t>(1, stepper_.length().steps()), batches, phases);
  if (under_way_) under_way_->result();  // a step late, as training reads it
  under_way_ = std::move(step);
  if (on_signal_ == OnSignal::kThrow) throw_if_interrupted();
  return under_way_->count();
}

// Waits for the last step.
void Throughput::settle() {
  if (under_way_) std::exchange(under_way_, std::nullopt)->result();
  wait_for(run_.device);
}

}  // namespace settrain
