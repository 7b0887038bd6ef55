#include "losses/kernels/smoothed_hinge_kernels.h"

namespace settrain {

int64_t smoothed_hinge_workspace(int64_t classes, int64_t k) {
  const int64_t steps = (classes + 7) / 8, size = k + 1;
  // In the order of Workspace in lanes/smoothed_hinge.cpp.
  const int64_t doubles =
      steps * 8 + steps * 8 + (steps + 1) * size * 8 + 27 * size + size * 8 + k * k + size * size + size + size + k;
  return doubles * static_cast<int64_t>(sizeof(double));
}

}  // namespace settrain
