#include "src/cuda/cuda_library.h"

#include <stdexcept>

#ifdef SETTRAIN_HAS_CUDA
#include <ATen/Context.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

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
  const char* problem = "it has no settrain_cuda_calls";
  if (void* const library = ::dlopen("libsettrain_cuda.so", RTLD_NOW | RTLD_GLOBAL)) {
    if (const void* const calls = ::dlsym(library, "settrain_cuda_calls"))
      return {static_cast<const CudaCalls*>(calls), ""};
  } else {
    problem = ::dlerror();
  }
  CudaLibrary none{nullptr, std::string("there is a GPU, but libsettrain_cuda.so cannot be loaded: ") + problem};
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
#ifdef SETTRAIN_HAS_CUDA
  return cuda_library().calls && at::hasCUDA();
#else
  return false;
#endif
}

const std::string& why_no_gpu() {
  return cuda_library().problem;
}

const CudaCalls& cuda_calls() {
  if (!cuda_library().calls) throw std::logic_error("cuda_calls: there is no GPU");
  return *cuda_library().calls;
}

}  // namespace settrain
