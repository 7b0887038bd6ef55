// Where the time of an optimizer step goes.
#pragma once

#include <c10/core/Device.h>

#include <chrono>

namespace settrain {

/// Seconds, of one step or of several.
struct StepPhases {
  double forward = 0;  // loss and training accuracy included
  double backward = 0;
  double update = 0;  // of the weights, with clipping and the clearing of gradients
};

/// Returns once the device has finished what it was given.
void wait_for(c10::Device device);

/// Adds the time since its last call to a phase, once the device has finished what it was given. Without phases it does
/// nothing, and the device is not waited for.
class PhaseTimer {
 public:
  PhaseTimer(StepPhases* phases, c10::Device device);
  void end(double StepPhases::*phase);

 private:
  using Clock = std::chrono::steady_clock;

  StepPhases* phases_;
  c10::Device device_;
  Clock::time_point last_;
};

}  // namespace settrain
