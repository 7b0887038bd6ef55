// What LibTorch's library of CPU kernels, oneDNN, may use.
#pragma once

#include <cstdlib>

namespace settrain {

/// Keeps oneDNN from AMX, the matrix instructions of Intel's Xeons since 2023: LibTorch 2.11's backward pass of strided
/// bf16 convolutions ends there in an illegal instruction (SIGILL), in Python too. AVX-512 with bf16 is used instead.
/// A value that the environment has already stays. To be called before LibTorch computes anything.
inline void keep_onednn_from_amx() {
  ::setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16", /*overwrite=*/0);
}

}  // namespace settrain
