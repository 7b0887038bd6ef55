// The one check of CUDA's return codes. Only for files that are built with CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "src/core/error.h"

namespace settrain {

/// Throws Error unless `status` is cudaSuccess. `doing` completes the sentence "CUDA failed while ...".
inline void cuda_check(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  throw Error("CUDA failed while " + std::string(doing) + ": " + cudaGetErrorString(status) + " (" +
              cudaGetErrorName(status) + ")");
}

}  // namespace settrain
