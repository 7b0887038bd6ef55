// The state of ATen's random numbers.
#pragma once

#include <ATen/core/Tensor.h>

namespace settrain {

/// Of ATen's generator for that device.
at::Tensor generator_state(c10::Device device);

/// While it lives, that generator goes on from an earlier state; then from where it was.
class GeneratorSetBack {
 public:
  GeneratorSetBack(c10::Device device, const at::Tensor& state);
  ~GeneratorSetBack();
  GeneratorSetBack(const GeneratorSetBack&) = delete;
  GeneratorSetBack& operator=(const GeneratorSetBack&) = delete;

 private:
  c10::Device device_;
  at::Tensor before_;
};

}  // namespace settrain
