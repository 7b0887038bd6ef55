#include "src/train/step_inputs.h"

#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

namespace settrain {

std::vector<StepPlan::Entry> StepPlan::all() const {
  std::vector<Entry> all;
  for (const Round& round : rounds) all.insert(all.end(), round.begin(), round.end());
  return all;
}

InputStream::InputStream(at::Device device, uint64_t seed) : device_(device), seed_(seed) {
  if (device.is_cuda()) stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

at::Tensor InputStream::here(const at::Tensor& tensor) const {
  if (!tensor.defined() || tensor.device() == device_) return tensor;
  at::Tensor copy;
  {
    const c10::OptionalStreamGuard guard(stream_);
    copy = tensor.to(device_, /*non_blocking=*/true);
  }
  // Its memory is not given to others before the current stream is done with it.
  if (stream_) copy.record_stream(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  return copy;
}

StepInputs InputStream::operator()(const std::vector<Batch>& batches, const StepNumber& number, StepPlan plan) const {
  StepInputs inputs{.parts = {}, .numbers = {}, .number = number, .plan = std::move(plan)};
  for (const Batch& batch : batches) {
    if (batch.size() == 0) continue;
    const StepPlan::Entry& entry = inputs.plan.own[inputs.parts.size()];
    MicroBatch part{.images = here(batch.images), .loss_input = {}, .number = entry.number};
    part.loss_input.labels = here(batch.labels);
    part.loss_input.label_sets = {here(batch.set_offsets), here(batch.set_classes)};
    part.loss_input.sample_ids = batch.sample_ids;
    part.loss_input.epoch = number.epoch;
    part.loss_input.noise_key = {seed_, number.step, entry.first_position};
    inputs.parts.push_back(std::move(part));
  }
  const at::Tensor numbers = at::empty({3}, at::TensorOptions(at::kDouble).pinned_memory(device_.is_cuda()));
  auto* const written = numbers.mutable_data_ptr<double>();
  written[0] = number.lr;
  written[1] = inputs.plan.divisor;
  written[2] = static_cast<double>(number.step);
  inputs.numbers = here(numbers);
  if (stream_) {
    c10::Event copied(device_.type());
    copied.record(*stream_);
    copied.block(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  }
  return inputs;
}

}  // namespace settrain
