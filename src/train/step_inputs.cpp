#include "src/train/step_inputs.h"

#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace settrain {
namespace {

bool alike(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

bool alike(const StepPart& a, const StepPart& b) {
  return !a.label_sets.defined() && !b.label_sets.defined() && alike(a.images, b.images) && alike(a.labels, b.labels);
}

}  // namespace

at::Tensor StepInputs::lr() const {
  return numbers.is_cpu() ? numbers[0] : numbers[0].to(at::kFloat);
}

at::Tensor StepInputs::step() const {
  return numbers[2].to(at::kLong);
}

bool alike(const StepInputs& a, const StepInputs& b) {
  return std::ranges::equal(a.parts, b.parts, [](const StepPart& x, const StepPart& y) { return alike(x, y); });
}

void copy_into(const StepInputs& to, const StepInputs& from) {
  to.numbers.copy_(from.numbers);
  for (size_t i = 0; i < to.parts.size(); ++i) {
    to.parts[i].images.copy_(from.parts[i].images);
    to.parts[i].labels.copy_(from.parts[i].labels);
  }
}

StepInputs cloned(const StepInputs& inputs) {
  StepInputs clones = inputs;
  clones.numbers = inputs.numbers.clone();
  for (StepPart& part : clones.parts) {
    part.images = part.images.clone();
    part.labels = part.labels.clone();
  }
  return clones;
}

InputStream::InputStream(at::Device device) : device_(device) {
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

StepInputs InputStream::operator()(const std::vector<Batch>& batches, const StepNumber& number, double divisor) const {
  StepInputs inputs;
  for (const Batch& batch : batches) {
    if (batch.size() == 0) continue;
    inputs.parts.push_back(
        {here(batch.images), here(batch.labels), {here(batch.set_offsets), here(batch.set_classes)}, batch.sample_ids});
  }
  const at::Tensor numbers = at::empty({3}, at::TensorOptions(at::kDouble).pinned_memory(device_.is_cuda()));
  auto* const written = numbers.mutable_data_ptr<double>();
  written[0] = number.lr;
  written[1] = divisor;
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
