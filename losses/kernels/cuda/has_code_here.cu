#include "losses/kernels/noise_kernels.h"
#include "src/core/cuda_check.h"

namespace settrain {
namespace {

// It is compiled for the same compute capabilities as the kernels of the losses.
__global__ void nothing() {}

}  // namespace

bool has_code_here() {
  cudaFuncAttributes unused;
  const cudaError_t status = cudaFuncGetAttributes(&unused, nothing);
  switch (status) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
      static_cast<void>(cudaGetLastError());  // the next check would report it as its own
      return false;
    default:
      cuda_check(status, "looking for the code of the losses");
      return true;
  }
}

}  // namespace settrain
