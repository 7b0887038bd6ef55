// How a network computes: device, precision, layout.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "models/model_output.h"
#include "src/engine/run_options.h"

namespace settrain {

class Model;

struct Computation {
  at::Device device = at::kCPU;
  bool bf16 = false;           // in convolutions and matrix products; weights, heads and losses stay float32
  bool channels_last = false;  // of weights and activations

  /// "cpu, float32, channels last"
  std::string describe() const;
};

/// Whether bf16 costs time there instead of saving it: a CPU without instructions for it.
bool bf16_is_emulated(at::Device device);

/// What train.precision and train.channels_last ask for on that device.
Computation make_computation(const TrainOptions& options, at::Device device);

/// The model's answer to `images` [batch, channels, height, width] float32, on any device. Scores are float32.
ModelOutput forward(Model& model, const at::Tensor& images, const Computation& computation);

}  // namespace settrain
