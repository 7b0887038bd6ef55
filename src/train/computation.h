// How a network computes: device, precision, layout.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/model_output.h"
#include "src/loader/pixel_writer.h"
#include "src/train/run_options.h"

namespace settrain {

class Model;

struct Computation {
  at::Device device = at::kCPU;
  bool bf16 = false;           // in convolutions and matrix products; weights, heads and losses stay float32
  bool channels_last = false;  // of weights and activations
  at::Tensor mean{}, std{};    // [1, channels, 1, 1] float32 on the device, of pixels in [0, 1]: for images of bytes

  /// "cpu, float32, channels last"
  std::string describe() const;

  /// What the loader should make of images that it reads: a GPU takes bytes, of which there are fewer to move, and
  /// normalises them itself; for the CPU they come as its convolutions take them.
  PixelFormat pixel_format() const;
};

/// Whether bf16 costs time there instead of saving it: a CPU without instructions for it.
bool bf16_is_emulated(at::Device device);

/// From now on float32 means float32 in this process: ATen would let cuDNN round the inputs of convolutions to 10 bits
/// (TF32).
void forbid_tf32();

/// What train.precision and train.channels_last ask for on that device, for images with that normalisation, which is
/// left out where the device is not there. Forbids TF32.
Computation make_computation(const TrainOptions& options, at::Device device, const Normalisation& normalisation);

/// `images` [batch, channels, height, width], normalised floating point or bytes, on any device, as the model takes
/// them: on its device, normalised.
at::Tensor as_input(const at::Tensor& images, const Computation& computation);

/// The model's answer to `images` [batch, channels, height, width], normalised floating point or bytes, on any device.
/// Scores are float32.
ModelOutput forward(Model& model, const at::Tensor& images, const Computation& computation);

}  // namespace settrain
