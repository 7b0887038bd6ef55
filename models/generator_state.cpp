#include "models/generator_state.h"

#include <ATen/Context.h>

#include <mutex>

namespace settrain {
namespace {

void set_generator_state(c10::Device device, const at::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace

at::Tensor generator_state(c10::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

GeneratorSetBack::GeneratorSetBack(c10::Device device, const at::Tensor& state)
    : device_(device), before_(generator_state(device)) {
  set_generator_state(device, state);
}

GeneratorSetBack::~GeneratorSetBack() {
  set_generator_state(device_, before_);
}

}  // namespace settrain
