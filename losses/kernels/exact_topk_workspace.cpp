#include "losses/kernels/exact_topk_kernels.h"

namespace settrain {

int64_t exact_topk_workspace(int64_t classes, int64_t rank) {
  constexpr int64_t kSpare = 16;
  // In the order of Workspace in lanes/exact_topk.cpp.
  return (classes + kSpare) * (8 + 8 + 64 + 3 * 64 + rank * 64 + 4 + 4) + 2 * rank * 64;
}

}  // namespace settrain
