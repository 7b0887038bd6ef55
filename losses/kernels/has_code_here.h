// Whether the kernels of the losses can run on a GPU at all.
#pragma once

namespace settrain {

/// Whether this build has machine code for the current CUDA device, or code that its driver can compile: a build for
/// newer devices has neither. Only in builds with CUDA.
bool has_code_here();

}  // namespace settrain
