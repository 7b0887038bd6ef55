#include "models/autocast.h"

#include <ATen/autocast_mode.h>

namespace settrain {

using namespace at::autocast;

namespace {

bool has_autocast(c10::DeviceType device) {
  return device == at::kCPU || device == at::kCUDA;
}

}  // namespace

Autocast::Autocast(c10::DeviceType device, bool on) : device_(device), before_(is_on(device)) {
  if (!has_autocast(device)) return;
  dtype_before_ = get_autocast_dtype(device);
  if (on) set_autocast_dtype(device, at::kBFloat16);
  set_autocast_enabled(device, on);
  increment_nesting();
}

Autocast::~Autocast() {
  if (!has_autocast(device_)) return;
  if (decrement_nesting() == 0) clear_cache();  // of rounded weights, which the next step changes
  set_autocast_enabled(device_, before_);
  set_autocast_dtype(device_, dtype_before_);
}

bool Autocast::is_on(c10::DeviceType device) {
  return has_autocast(device) && is_autocast_enabled(device);
}

}  // namespace settrain
