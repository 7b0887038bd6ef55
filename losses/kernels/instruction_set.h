// The instruction sets of the kernels of cpu/. One source is compiled for each set, in a namespace of its own; callers
// pick one. Results do not depend on it.
#pragma once

// Code of a kernel is inlined by force, so that no copy made for a larger set can end up in code for the baseline.
#define SETTRAIN_ALWAYS_INLINE inline __attribute__((always_inline))
#define SETTRAIN_INLINE_LAMBDA __attribute__((always_inline))

/// Declares a function of a kernel for every set.
#define SETTRAIN_IN_EVERY_SET(...) \
  namespace baseline {             \
  __VA_ARGS__;                     \
  }                                \
  namespace avx2 {                 \
  __VA_ARGS__;                     \
  }                                \
  namespace avx512 {               \
  __VA_ARGS__;                     \
  }

/// The function of that name for `set`.
#define SETTRAIN_PICK(set, function)                               \
  ((set) == ::settrain::InstructionSet::kAvx512 ? avx512::function \
   : (set) == ::settrain::InstructionSet::kAvx2 ? avx2::function   \
                                                : baseline::function)

namespace settrain {

enum class InstructionSet { kBaseline, kAvx2, kAvx512 };

/// The largest that this processor has: AVX2 with FMA; AVX-512 F, VL, BW and DQ.
InstructionSet instruction_set();

}  // namespace settrain
