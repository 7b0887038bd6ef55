#include "src/cuda/cuda_library.h"

#include <stdexcept>

#ifdef SETTRAIN_HAS_CUDA
#include <ATen/Context.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <string_view>

#include "src/core/log.h"
#endif

namespace settrain {
namespace {

struct CudaLibrary {
  const CudaCalls* calls = nullptr;
  std::string problem;
};

#ifdef SETTRAIN_HAS_CUDA
CudaLibrary load_library() {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) return {};
  // The path of the program's libraries has it. It is never unloaded.
  std::string problem = "libsettrain_cuda.so cannot be used: ";
  if (void* const library = ::dlopen("libsettrain_cuda.so", RTLD_NOW | RTLD_GLOBAL)) {
    const auto* const calls = static_cast<const CudaCalls*>(::dlsym(library, "settrain_cuda_calls"));
    if (!calls) {
      problem += "it has no settrain_cuda_calls";
    } else if (std::string_view(calls->build) != SETTRAIN_CUDA_CALLS_BUILD) {
      problem += fmt::format("it is of settrain {}, this program of {}", calls->build, SETTRAIN_CUDA_CALLS_BUILD);
    } else if (!at::hasCUDA()) {
      problem = "LibTorch finds no CUDA";
    } else {
      return {calls, ""};
    }
  } else {
    problem += ::dlerror();
  }
  CudaLibrary none{nullptr, "there is a GPU, but " + problem};
  log::warning("[model] " + none.problem);
  return none;
}
#else
CudaLibrary load_library() {
  return {};
}
#endif

const CudaLibrary& cuda_library() {
  static const CudaLibrary library = load_library();
  return library;
}

}  // namespace

bool has_gpu() {
  return cuda_library().calls != nullptr;
}

const std::string& why_no_gpu() {
  return cuda_library().problem;
}

const CudaCalls& cuda_calls() {
  if (!cuda_library().calls) throw std::logic_error("cuda_calls: there is no GPU");
  return *cuda_library().calls;
}

}  // namespace settrain
