// Where the kernels of the losses run.
#pragma once

#include <c10/core/Device.h>

namespace settrain {

/// Whether the kernels of the losses run on that device: on the CPU; and on a GPU that this build was compiled for.
/// Elsewhere losses are computed by LibTorch's operations.
bool has_loss_kernels(at::Device device);

}  // namespace settrain
