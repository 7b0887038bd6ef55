#include "models/norm_kernel.h"

// Versions for every processor, for AVX2 and for AVX-512. They are local to this file: elsewhere the linker could use
// them in the place of baseline functions.

namespace settrain {
namespace {

using RectifyRows = void(const float*, int64_t, int64_t, int64_t, const float*, const float*, float*, int64_t);

inline __attribute__((always_inline)) void rectify_rows(const float* x, int64_t stride, int64_t rows, int64_t channels,
                                                        const float* __restrict scale, const float* __restrict shift,
                                                        float* out, int64_t out_stride) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* __restrict from = x + r * stride;
    float* __restrict to = out + r * out_stride;
    for (int64_t c = 0; c < channels; ++c) {
      const float value = from[c] * scale[c] + shift[c];
      to[c] = value < 0 ? 0 : value;
    }
  }
}

void rectify_baseline(const float* x, int64_t stride, int64_t rows, int64_t channels, const float* scale,
                      const float* shift, float* out, int64_t out_stride) {
  rectify_rows(x, stride, rows, channels, scale, shift, out, out_stride);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void rectify_avx2(const float* x, int64_t stride, int64_t rows, int64_t channels,
                                                      const float* scale, const float* shift, float* out,
                                                      int64_t out_stride) {
  rectify_rows(x, stride, rows, channels, scale, shift, out, out_stride);
}

__attribute__((target("avx512f,avx512vl,fma,prefer-vector-width=512"))) void rectify_avx512(
    const float* x, int64_t stride, int64_t rows, int64_t channels, const float* scale, const float* shift, float* out,
    int64_t out_stride) {
  rectify_rows(x, stride, rows, channels, scale, shift, out, out_stride);
}
#endif

RectifyRows* fastest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return rectify_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return rectify_avx2;
#endif
  return rectify_baseline;
}

}  // namespace

void rectify_norm_rows(const float* x, int64_t stride, int64_t rows, int64_t channels, const float* scale,
                       const float* shift, float* out, int64_t out_stride) {
  static RectifyRows* const rectify = fastest();
  rectify(x, stride, rows, channels, scale, shift, out, out_stride);
}

}  // namespace settrain
