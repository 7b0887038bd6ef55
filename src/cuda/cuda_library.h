// LibTorch's CUDA library, which is loaded where a GPU is used: it is large, and a machine without a GPU may lack what
// it needs.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/version.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

/// Versions on which the types here depend. CMake defines SETTRAIN_VERSION for the two files that use this.
#define SETTRAIN_CUDA_CALLS_BUILD SETTRAIN_VERSION " with LibTorch " TORCH_VERSION

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace settrain {

/// A CUDA graph that is being captured.
struct GraphCapture {
  std::function<void()> end;                    // ends the capture
  std::vector<std::function<void()>> clean_up;  // for where `end` throws
  std::function<void()> replay;                 // runs what was captured, once `end` has returned
};

/// The calls that need LibTorch's CUDA library by name. Everything else goes through ATen's device-independent
/// interface. The functions are in libsettrain_cuda.so (cuda_calls.cpp), which is linked with that library.
struct CudaCalls {
  /// SETTRAIN_CUDA_CALLS_BUILD where the library was built. The program uses none that was built from other versions.
  const char* build;
  /// From now on this thread computes on that device, on a stream of its own.
  void (*take_stream)(at::Device device);
  /// Begins to capture what this thread does.
  GraphCapture (*begin_capture)();
  /// NCCL between the processes of the store.
  c10::intrusive_ptr<c10d::Backend> (*connect_nccl)(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                    int world_size, std::chrono::milliseconds timeout);
};

/// Whether there is a GPU that can be used. The first call loads libsettrain_cuda.so where the driver has a GPU. It
/// must come before ATen is asked for CUDA, which remembers the first answer. Warns where the library cannot be loaded.
bool has_gpu();

/// Why has_gpu() is false though the driver has a GPU; else empty.
const std::string& why_no_gpu();

/// Throws std::logic_error where has_gpu() is false.
const CudaCalls& cuda_calls();

}  // namespace settrain
