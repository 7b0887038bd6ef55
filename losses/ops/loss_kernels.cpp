#include "losses/ops/loss_kernels.h"

#if defined(SETTRAIN_HAS_CUDA)
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include <map>
#include <mutex>

#include "losses/kernels/noise_kernels.h"
#endif

namespace settrain {
namespace {

#if defined(SETTRAIN_HAS_CUDA)
// Asked once for each device.
bool has_code_for(c10::DeviceIndex index) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, bool> known;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(index); found != known.end()) return found->second;
  const c10::cuda::CUDAGuard guard(index);
  return known[index] = has_code_here();
}
#endif

}  // namespace

bool has_loss_kernels(at::Device device) {
#if defined(SETTRAIN_HAS_CUDA)
  if (device.is_cuda()) return has_code_for(device.has_index() ? device.index() : c10::cuda::current_device());
#endif
  return device.is_cpu();
}

}  // namespace settrain
