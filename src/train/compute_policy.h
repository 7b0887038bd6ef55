// How a process computes: device, precision, memory layout, determinism, threads, and ATen's random numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "models/model_output.h"
#include "src/loader/pixel_writer.h"
#include "src/train/run_options.h"

namespace settrain {

class Model;

/// "auto" (a GPU where there is one), "cpu", "cuda" or "cuda:N". Throws ConfigError for another name or a device that
/// is not there.
at::Device find_device(const std::string& name);

/// Sets the process' compute threads, whether ATen keeps to deterministic algorithms, and how its heap is kept, as the
/// config says; its run.threads is resolved.
void prepare_process(const config::Config& config, at::Device device);

/// Where the options train in bf16 on a CPU with AMX, tries in a child process whether the gradients of strided
/// convolutions survive it, since a LibTorch 2.11 was seen to end in an illegal instruction there, and else keeps
/// oneDNN to AVX-512. To be called before LibTorch computes anything and before there are compute threads: oneDNN looks
/// once at what it may use.
void keep_training_from_broken_amx(const TrainOptions& options, at::Device device);

/// Whether oneDNN may take the processor's AMX, if it has it, for bf16.
bool may_take_amx();

/// Returns once the device has finished what it was given.
void wait_for(at::Device device);

/// The use that ATen's random generator is seeded for.
enum SeedUse : uint32_t { kSeedOfInitialWeights = 0, kSeedOfStep = 1 };

/// Seeds ATen's generators as a function of (seed, use, step, micro-batch of the step).
void seed_aten(uint64_t seed, SeedUse use, int64_t step = 0, int64_t micro_batch = 0);

/// Where and how a network computes.
struct ComputePolicy {
  at::Device device = at::kCPU;
  bool bf16 = false;           // in convolutions and matrix products; weights, heads and losses stay float32
  bool channels_last = false;  // of weights and activations
  at::Tensor mean{}, std{};    // [1, channels, 1, 1] float32 on the device, of pixels in [0, 1]: for images of bytes

  /// "cpu, float32, channels last"
  std::string describe() const;

  /// The pixels that the loader should make: a GPU takes bytes, of which there are fewer to move, and normalises them
  /// itself; for the CPU they come as its convolutions take them.
  PixelFormat pixel_format() const;
};

/// The policy of train.precision and train.channels_last on that device, for images with that normalisation, which is
/// left out where the device is not there. Forbids TF32.
ComputePolicy make_compute_policy(const TrainOptions& options, at::Device device, const Normalisation& normalisation);

/// From now on float32 means float32 in this process: ATen would let cuDNN round the inputs of convolutions to 10 bits
/// (TF32).
void forbid_tf32();

/// `images` [batch, channels, height, width], normalised floating point or bytes, on any device, as the model takes
/// them: on its device, normalised.
at::Tensor as_input(const at::Tensor& images, const ComputePolicy& policy);

/// The model's answer to `images` [batch, channels, height, width], normalised floating point or bytes, on any device.
/// Scores are float32.
ModelOutput forward(Model& model, const at::Tensor& images, const ComputePolicy& policy);

}  // namespace settrain
