// Mixed precision.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace settrain {

/// While it lives, this thread's convolutions and matrix products on that kind of device round their inputs to bf16, or
/// do not, whatever held before. Nothing happens on devices other than the CPU and CUDA.
class Autocast {
 public:
  Autocast(c10::DeviceType device, bool on);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  static bool is_on(c10::DeviceType device);

 private:
  c10::DeviceType device_;
  bool before_;
  c10::ScalarType dtype_before_ = c10::ScalarType::Undefined;
};

}  // namespace settrain
