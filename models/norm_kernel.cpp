#include "models/norm_kernel.h"

#include <bit>

// Versions for every processor, for AVX2 and for AVX-512. They are local to this file: elsewhere the linker could use
// them in the place of baseline functions.

namespace settrain {
namespace {

#define SETTRAIN_INLINE inline __attribute__((always_inline))

template <class T>
using RectifyRows = void(const T*, int64_t, int64_t, int64_t, const float*, const float*, T*, int64_t);

SETTRAIN_INLINE float as_float(float value) {
  return value;
}

SETTRAIN_INLINE float as_float(c10::BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.x) << 16);
}

SETTRAIN_INLINE void store(float value, float& to) {
  to = value;
}

SETTRAIN_INLINE void store(float value, c10::BFloat16& to) {
  constexpr uint32_t kNan = 0x7fc0, kJustBelowHalf = 0x7fff;
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + kJustBelowHalf + ((bits >> 16) & 1)) >> 16;
  to.x = static_cast<uint16_t>(value != value ? kNan : rounded);
}

template <class T>
SETTRAIN_INLINE void rectify_rows(const T* x, int64_t stride, int64_t rows, int64_t channels,
                                  const float* __restrict scale, const float* __restrict shift, T* out,
                                  int64_t out_stride) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* __restrict from = x + r * stride;
    T* __restrict to = out + r * out_stride;
    for (int64_t c = 0; c < channels; ++c) {
      const float value = as_float(from[c]) * scale[c] + shift[c];
      store(value < 0 ? 0 : value, to[c]);
    }
  }
}

template <class T>
void rectify_baseline(const T* x, int64_t stride, int64_t rows, int64_t channels, const float* scale,
                      const float* shift, T* out, int64_t out_stride) {
  rectify_rows(x, stride, rows, channels, scale, shift, out, out_stride);
}

#if defined(__x86_64__)
template <class T>
__attribute__((target("avx2,fma"))) void rectify_avx2(const T* x, int64_t stride, int64_t rows, int64_t channels,
                                                      const float* scale, const float* shift, T* out,
                                                      int64_t out_stride) {
  rectify_rows(x, stride, rows, channels, scale, shift, out, out_stride);
}

template <class T>
__attribute__((target("avx512f,avx512vl,avx512bw,fma,prefer-vector-width=512"))) void rectify_avx512(
    const T* x, int64_t stride, int64_t rows, int64_t channels, const float* scale, const float* shift, T* out,
    int64_t out_stride) {
  rectify_rows(x, stride, rows, channels, scale, shift, out, out_stride);
}
#endif

template <class T>
RectifyRows<T>* fastest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) return rectify_avx512<T>;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return rectify_avx2<T>;
#endif
  return rectify_baseline<T>;
}

}  // namespace

void rectify_norm_rows(const float* x, int64_t stride, int64_t rows, int64_t channels, const float* scale,
                       const float* shift, float* out, int64_t out_stride) {
  static RectifyRows<float>* const rectify = fastest<float>();
  rectify(x, stride, rows, channels, scale, shift, out, out_stride);
}

void rectify_norm_rows(const c10::BFloat16* x, int64_t stride, int64_t rows, int64_t channels, const float* scale,
                       const float* shift, c10::BFloat16* out, int64_t out_stride) {
  static RectifyRows<c10::BFloat16>* const rectify = fastest<c10::BFloat16>();
  rectify(x, stride, rows, channels, scale, shift, out, out_stride);
}

}  // namespace settrain
