// libsettrain_cuda.so: the calls of LibTorch's CUDA library (src/cuda/cuda_library.h).
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <memory>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "src/cuda/cuda_library.h"

namespace settrain {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

void take_stream(at::Device device) {
  if (device.has_index()) c10::cuda::set_device(device.index());
  c10::cuda::device_synchronize();  // what was begun on the other stream
  c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool());
}

// LibTorch 2.11 leaves a capture that CUDA refused half open: its allocators would go on to defer what is freed, and
// its generator refuses to draw. Where capture_end() failed later, at instantiating the graph, it had closed all of it
// before, and the graph gives its memory back when it is destroyed: then the calls for memory throw.
std::vector<std::function<void()>> close_failed_capture(at::cuda::MempoolId_t pool) {
  const c10::DeviceIndex device = c10::cuda::current_device();
  at::HostAllocator* const host = at::getHostAllocator(at::kCUDA);
  return {[=] { allocator::endAllocateToPool(device, pool); }, [=] { allocator::releasePool(device, pool); },
          [=] { host->end_allocate_to_pool(pool); }, [=] { host->release_pool(pool); },
          [=] {
            at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator(device);
            generator.graphsafe_set_state(generator.clone());
          }};
}

GraphCapture begin_capture() {
  auto graph = std::make_shared<at::cuda::CUDAGraph>();
  const at::cuda::MempoolId_t pool = at::cuda::graph_pool_handle();
  // The graph keeps memory of its own, in which the free blocks of the steps before are of no use.
  c10::cuda::device_synchronize();
  allocator::emptyCache();
  // Only this thread captures: the loader's threads go on asking for pinned memory.
  graph->capture_begin(pool, cudaStreamCaptureModeThreadLocal);
  return {[graph] { graph->capture_end(); }, close_failed_capture(pool), [graph] { graph->replay(); }};
}

c10::intrusive_ptr<c10d::Backend> connect_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int world_size,
                                               std::chrono::milliseconds timeout) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, world_size, options);
}

}  // namespace
}  // namespace settrain

extern "C" {
extern const settrain::CudaCalls settrain_cuda_calls;
const settrain::CudaCalls settrain_cuda_calls{SETTRAIN_CUDA_CALLS_BUILD, settrain::take_stream, settrain::begin_capture,
                                              settrain::connect_nccl};
}
