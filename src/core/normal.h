// One standard normal from one random word, bit for bit the same on every CPU and GPU: only additions, multiplications,
// fused multiply-adds and square roots in float32, all of which IEEE 754 defines to the last bit, and no function of a
// maths library.
#pragma once

#include <cstdint>

#include "src/core/philox.h"

namespace settrain {

/// No |normal()| is larger.
inline constexpr float kMaxNormal = 6.34F;

/// a + b, a * b, a * b + c rounded once, sqrt(a). On CUDA by the intrinsics that the compiler never fuses nor
/// approximates.
struct ScalarArithmetic {
  using Float = float;
  using Int = int32_t;
  using Word = uint32_t;

#if defined(__CUDA_ARCH__)
  __device__ static float add(float a, float b) {
    return __fadd_rn(a, b);
  }
  __device__ static float mul(float a, float b) {
    return __fmul_rn(a, b);
  }
  __device__ static float fma(float a, float b, float c) {
    return __fmaf_rn(a, b, c);
  }
  __device__ static float sqrt(float a) {
    return __fsqrt_rn(a);
  }
  __device__ static float from_bits(int32_t bits) {
    return __int_as_float(bits);
  }
  __device__ static int32_t to_bits(float value) {
    return __float_as_int(value);
  }
#else
  SETTRAIN_HOST_DEVICE static float add(float a, float b) {
    return a + b;
  }
  SETTRAIN_HOST_DEVICE static float mul(float a, float b) {
    return a * b;
  }
  SETTRAIN_HOST_DEVICE static float fma(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
  }
  SETTRAIN_HOST_DEVICE static float sqrt(float a) {
    return __builtin_sqrtf(a);
  }
  SETTRAIN_HOST_DEVICE static float from_bits(int32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
  }
  SETTRAIN_HOST_DEVICE static int32_t to_bits(float value) {
    int32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
  }
#endif
  SETTRAIN_HOST_DEVICE static float to_float(int32_t value) {
    return static_cast<float>(value);
  }
  SETTRAIN_HOST_DEVICE static int32_t as_int(uint32_t word) {
    return static_cast<int32_t>(word);
  }
};

/// The polynomial with these coefficients, highest power first, at x; by Horner's rule.
template <class Arithmetic, class Float>
SETTRAIN_HOST_DEVICE inline Float polynomial(Float, Float sum) {
  return sum;
}
template <class Arithmetic, class Float, class... Coefficients>
SETTRAIN_HOST_DEVICE inline Float polynomial(Float x, Float sum, float next, Coefficients... rest) {
  return polynomial<Arithmetic, Float>(x, Arithmetic::fma(sum, x, Float(next)), rest...);
}

/// -ln(magnitude + 1/2) + 32 ln 2, to about one float32 rounding, for magnitude in [0, 2^31).
template <class Arithmetic>
SETTRAIN_HOST_DEVICE inline typename Arithmetic::Float minus_log_of_tail(typename Arithmetic::Int magnitude) {
  using Float = typename Arithmetic::Float;
  using Int = typename Arithmetic::Int;
  const Int bits = Arithmetic::to_bits(Arithmetic::add(Arithmetic::to_float(magnitude), Float(0.5F)));
  // magnitude + 1/2 = 2^exponent * (1 + x) with 1 + x in [sqrt(1/2), sqrt(2)), whose lower end has the bits subtracted
  // here.
  const Int exponent = (bits - 0x3F3504F3) >> 23;
  const Float x = Arithmetic::add(Arithmetic::from_bits(bits - exponent * (1 << 23)), Float(-1.0F));
  const Float log_over_x = polynomial<Arithmetic, Float>(
      x, Float(-7.451186329e-02F), 1.280661076e-01F, -1.326603144e-01F, 1.419965029e-01F, -1.660836935e-01F,
      2.000093907e-01F, -2.500157952e-01F, 3.333334625e-01F, -4.999998808e-01F, 1.000000000e+00F);
  return Arithmetic::fma(Arithmetic::to_float(Int(32) - exponent), Float(0.693147181F),
                         Arithmetic::mul(Arithmetic::mul(Float(-1.0F), x), log_over_x));
}

/// The standard normal quantile of u = (word + 1/2)/2^32. Over all 2^32 words: never decreasing in `word`,
/// antisymmetric (normal(~word) == -normal(word)), |normal| <= kMaxNormal. Over a dense scan: within 7e-7 of the true
/// quantile.
///
/// With q = min(u, 1 - u) in (0, 1/2] and r = sqrt(-2 ln q), the magnitude is r + g(r) for a smooth g. The coefficients
/// come from scripts/fit_normal.py. They are part of `rng: 1`: a changed bit changes every result. Arithmetic:
/// ScalarArithmetic, or that of several lanes.
template <class Arithmetic>
SETTRAIN_HOST_DEVICE inline typename Arithmetic::Float normal_of(typename Arithmetic::Word word) {
  using Float = typename Arithmetic::Float;
  using Int = typename Arithmetic::Int;
  const Int upper_half = Arithmetic::as_int(word) >> 31;  // all ones where u > 1/2, else zero
  const Float minus_log_q = minus_log_of_tail<Arithmetic>(Arithmetic::as_int(word) ^ upper_half);
  const Float r = Arithmetic::sqrt(Arithmetic::add(minus_log_q, minus_log_q));
  const Float y = Arithmetic::fma(r, Float(3.580189943e-01F), Float(-1.421535134e+00F));  // r scaled to [-1, 1]
  const Float g = polynomial<Arithmetic, Float>(
      y, Float(1.878256910e-03F), -2.833392238e-03F, -3.223393811e-03F, 4.812707659e-03F, 5.009030923e-03F,
      -7.624634542e-03F, 1.339562004e-03F, -2.392735798e-03F, 9.148685262e-03F, -1.512449980e-02F, 2.418105491e-02F,
      -4.167845845e-02F, 7.380343229e-02F, -1.351659298e-01F, 2.636944056e-01F, -6.015719175e-01F);
  const Int sign = (upper_half ^ -1) & INT32_MIN;
  return Arithmetic::from_bits(Arithmetic::to_bits(Arithmetic::add(r, g)) ^ sign);
}
SETTRAIN_HOST_DEVICE inline float normal(uint32_t word) {
  return normal_of<ScalarArithmetic>(word);
}

}  // namespace settrain
