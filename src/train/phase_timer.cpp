#include "src/train/phase_timer.h"

#include <ATen/detail/CUDAHooksInterface.h>

namespace settrain {

void wait_for(c10::Device device) {
  if (device.is_cuda()) at::detail::getCUDAHooks().deviceSynchronize(device.index());
}

PhaseTimer::PhaseTimer(StepPhases* phases, c10::Device device) : phases_(phases), device_(device) {
  if (!phases_) return;
  wait_for(device_);
  last_ = Clock::now();
}

void PhaseTimer::end(double StepPhases::*phase) {
  if (!phases_) return;
  wait_for(device_);
  const auto now = Clock::now();
  phases_->*phase += std::chrono::duration<double>(now - last_).count();
  last_ = now;
}

}  // namespace settrain
