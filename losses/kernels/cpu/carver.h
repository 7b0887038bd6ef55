// Hands out the memory that a kernel works in, so that one list of its arrays says where each lies and how much all
// need.
#pragma once

#include <cstdint>

#include "losses/kernels/instruction_set.h"

namespace settrain {
namespace {

/// Without memory (null) it only adds up what is taken.
struct Carver {
  char* memory;
  int64_t bytes = 0;  // taken so far

  template <class T>
  SETTRAIN_ALWAYS_INLINE T* take(int64_t count) {
    char* const taken = memory ? memory + bytes : nullptr;
    bytes += count * static_cast<int64_t>(sizeof(T));
    return reinterpret_cast<T*>(taken);
  }
};

}  // namespace
}  // namespace settrain
