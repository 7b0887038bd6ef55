#include "src/train/compute_policy.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/cpu/Utils.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "models/autocast.h"
#include "models/model.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/process.h"
#include "src/core/random.h"
#include "src/cuda/cuda_library.h"
#include "src/train/compute_threads.h"

namespace settrain {
namespace {

// Advice where a GPU was asked for and none is there.
std::string no_gpu_advice() {
#ifdef SETTRAIN_HAS_CUDA
  if (!why_no_gpu().empty()) return why_no_gpu();
  return "no GPU was found; run on --device cpu, or check the driver with nvidia-smi";
#else
  return "this build has no CUDA; run on --device cpu, or build with scripts/setup --cuda";
#endif
}

// On the CPU oneDNN's convolutions are faster with the channels last, as measured (docs/benchmarks.md). On a GPU only
// bf16 gains by it: cuDNN's tensor cores want that layout, and float32 without TF32 does not use them.
bool channels_last_is_faster(const ComputePolicy& policy) {
  return policy.device.is_cpu() || policy.bf16;
}

at::Tensor per_channel(const std::vector<float>& values, at::Device device) {
  at::Tensor tensor = at::empty({1, std::ssize(values), 1, 1}, at::kFloat);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<float>());
  return tensor.to(device);
}

// Gives the bits of the loader's normalisation. On the CPU it rounds to bf16 as the loader does; on a GPU autocast
// rounds. Divides by tensors, since a division by a number would multiply by its inverse on a GPU.
at::Tensor normalised(const at::Tensor& bytes, const ComputePolicy& policy) {
  const at::Tensor most = at::full({1}, 255.0F, policy.mean.options());
  const at::Tensor numbers = bytes.to(at::kFloat).div_(most).sub_(policy.mean).div_(policy.std);
  return policy.device.is_cpu() && policy.bf16 ? numbers.to(at::kBFloat16) : numbers;
}

constexpr const char* kMostInstructions = "ONEDNN_MAX_CPU_ISA";

bool is_bf16(const TrainOptions& options) {
  return options.precision == "bf16";
}

// The backward pass of strided bf16 convolutions, for which a LibTorch 2.11 was seen to end in an illegal instruction
// where it takes AMX.
void compute_strided_gradients() {
  const c10::NoGradGuard no_grad;
  for (const int64_t kernel : {1, 3}) {
    for (const int64_t in : {3, 64}) {
      const auto options = at::TensorOptions(at::kBFloat16).memory_format(at::MemoryFormat::ChannelsLast);
      const at::Tensor x = at::ones({2, in, 16, 16}, options), weight = at::ones({64, in, kernel, kernel}, options);
      const std::array<int64_t, 2> stride{2, 2}, padding{kernel / 2, kernel / 2}, dilation{1, 1}, none{0, 0};
      const at::Tensor y = at::conv2d(x, weight, {}, stride, padding, dilation);
      at::convolution_backward(y, x, weight, std::nullopt, stride, padding, dilation, false, none, 1,
                               {true, true, false});
    }
  }
}

// Whether compute_strided_gradients() survives, tried in a child process, which computes in one thread.
bool gradients_survive_amx() {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return false;
  constexpr unsigned kMostSeconds = 60;
  if (child == 0) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    std::signal(SIGILL, SIG_DFL);
    ::alarm(kMostSeconds);
    at::set_num_threads(1);
    try {
      compute_strided_gradients();
    } catch (...) {
      std::_Exit(1);
    }
    std::_Exit(0);
  }
  int status = 0;
  pid_t ended = -1;
  do {
    ended = ::waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  return ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

bool may_take_amx() {
#if defined(__x86_64__) && defined(__linux__)
  const std::string most = environment_variable(kMostInstructions).value_or("ALL");
  const bool is_allowed = most == "ALL" || most == "DEFAULT" || most.find("AMX") != std::string::npos;
  return is_allowed && __builtin_cpu_supports("avx512bf16") && at::cpu::init_amx();
#else
  return false;
#endif
}

void keep_training_from_broken_amx(const TrainOptions& options, at::Device device) {
  if (!is_bf16(options) || !device.is_cpu() || environment_variable(kMostInstructions) || !may_take_amx()) return;
  static const bool survives = gradients_survive_amx();
  if (survives) return;
  log::info("[run] bf16 gradients could not be computed by this processor's AMX; AVX-512 is used");
  keep_onednn_from_amx();
}

at::Device find_device(const std::string& name) {
  if (name == "auto") return at::Device(has_gpu() ? at::kCUDA : at::kCPU);
  at::Device device(at::kMeta);
  try {
    device = at::Device(name);
  } catch (const c10::Error&) {  // no device's name
  }
  if (!device.is_cpu() && !device.is_cuda())
    throw ConfigError("--device " + name + ": expected auto, cpu, cuda or cuda:N");
  if (device.is_cpu()) return device;
  const int64_t gpus = has_gpu() ? at::detail::getCUDAHooks().deviceCount() : 0;
  if (gpus == 0) throw ConfigError("--device " + name + ": " + no_gpu_advice());
  if (device.index() >= gpus) {
    throw ConfigError("--device " + name + ": there are " + std::to_string(gpus) + " GPUs, numbered from 0");
  }
  return device;
}

void prepare_process(const config::Config& config, at::Device device) {
  set_compute_threads(config.get<int64_t>("run.threads"));
  const config::Switch wanted = config.read<TrainOptions>("train").deterministic;
  const bool deterministic = wanted == config::Switch::kAuto ? device.is_cpu() : wanted == config::Switch::kOn;
  at::globalContext().setDeterministicAlgorithms(deterministic, /*warn_only=*/false);
  at::globalContext().setDeterministicCuDNN(deterministic);
  at::globalContext().setBenchmarkCuDNN(!deterministic);
  // Deterministic mode would also fill every new tensor, with threads of its own, even within the loader's. Nothing
  // here reads what it has not written.
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  // cuBLAS repeats its results only with a workspace of fixed size, which it reads when it is first used.
  if (deterministic && device.is_cuda()) setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  if (device.is_cpu()) keep_freed_memory();
}

void wait_for(at::Device device) {
  if (device.is_cuda()) at::detail::getCUDAHooks().deviceSynchronize(device.index());
}

void seed_aten(uint64_t seed, SeedUse use, int64_t step, int64_t micro_batch) {
  const auto words =
      random_words(seed, Stream::kAten, 0, use, static_cast<uint32_t>(micro_batch), static_cast<uint32_t>(step));
  at::manual_seed((uint64_t{words[0]} << 32) | words[1]);
}

void forbid_tf32() {
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
}

std::string ComputePolicy::describe() const {
  return device.str() + (bf16 ? ", bf16" : ", float32") + (channels_last ? ", channels last" : ", channels first");
}

PixelFormat ComputePolicy::pixel_format() const {
  if (device.is_cuda()) return {PixelType::kByte, channels_last};
  return {bf16 ? PixelType::kBFloat16 : PixelType::kFloat, channels_last};
}

ComputePolicy make_compute_policy(const TrainOptions& options, at::Device device, const Normalisation& normalisation) {
  forbid_tf32();
  ComputePolicy policy{device, is_bf16(options), options.channels_last == config::Switch::kOn};
  if (device.is_cpu() || at::hasCUDA()) {
    policy.mean = per_channel(normalisation.mean, device);
    policy.std = per_channel(normalisation.std, device);
  }
  if (options.channels_last == config::Switch::kAuto) policy.channels_last = channels_last_is_faster(policy);
  return policy;
}

at::Tensor as_input(const at::Tensor& images, const ComputePolicy& policy) {
  const bool has_pixels = images.dim() == 4;  // features have two dimensions
  const auto format =
      policy.channels_last && has_pixels ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  const at::Tensor input = images.to(policy.device, /*non_blocking=*/true).contiguous(format);
  return input.scalar_type() == at::kByte ? normalised(input, policy) : input;
}

ModelOutput forward(Model& model, const at::Tensor& images, const ComputePolicy& policy) {
  const Autocast autocast(policy.device.type(), policy.bf16);
  return model.forward(as_input(images, policy));
}

}  // namespace settrain
