#include "losses/kernels/instruction_set.h"

namespace settrain {

InstructionSet instruction_set() {
#if defined(__x86_64__)
  static const InstructionSet found = [] {
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    return avx2 && avx512 ? InstructionSet::kAvx512 : avx2 ? InstructionSet::kAvx2 : InstructionSet::kBaseline;
  }();
  return found;
#else
  return InstructionSet::kBaseline;
#endif
}

}  // namespace settrain
