// Sixteen floats or eight doubles at a time, for kernels that are compiled once for every instruction set (see
// instruction_set.h): one register of AVX-512, two of AVX2, four of the baseline. The number of lanes is the same
// everywhere, and every operation is one that IEEE 754 defines to the last bit, so the results are the same to the last
// bit. (The smoothed hinge also calls the C library's exp and log, a few times a row, the same for every set.)
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <type_traits>

#include "losses/kernels/instruction_set.h"
#include "src/core/normal.h"

namespace settrain {
namespace {

#if defined(__AVX512F__)
constexpr int kRegisterBytes = 64;
#elif defined(__AVX2__)
constexpr int kRegisterBytes = 32;
#else
constexpr int kRegisterBytes = 16;
#endif
constexpr int kRegisters = 64 / kRegisterBytes;
template <class T>
constexpr int kLanesOf = 64 / sizeof(T);
constexpr int kLanes = kLanesOf<float>;

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// The compiler knows arithmetic, comparisons (all bits set where true) and choices of registers.
template <class T>
using Register __attribute__((vector_size(kRegisterBytes))) = T;

// It knows no fused multiply-adds, square roots and products of 64 bits.
#if defined(__AVX512F__)
SETTRAIN_ALWAYS_INLINE Register<float> fused(Register<float> a, Register<float> b, Register<float> c) {
  return _mm512_fmadd_ps(a, b, c);
}
SETTRAIN_ALWAYS_INLINE Register<double> fused(Register<double> a, Register<double> b, Register<double> c) {
  return _mm512_fmadd_pd(a, b, c);
}
SETTRAIN_ALWAYS_INLINE Register<float> root(Register<float> a) {
  return _mm512_sqrt_ps(a);
}
SETTRAIN_ALWAYS_INLINE Register<uint64_t> product_of_even(Register<uint32_t> a, Register<uint32_t> b) {
  return reinterpret_cast<Register<uint64_t>>(
      _mm512_mul_epu32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
constexpr Register<uint32_t> kLowHalves{0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30};
#elif defined(__AVX2__)
SETTRAIN_ALWAYS_INLINE Register<float> fused(Register<float> a, Register<float> b, Register<float> c) {
  return _mm256_fmadd_ps(a, b, c);
}
SETTRAIN_ALWAYS_INLINE Register<double> fused(Register<double> a, Register<double> b, Register<double> c) {
  return _mm256_fmadd_pd(a, b, c);
}
SETTRAIN_ALWAYS_INLINE Register<float> root(Register<float> a) {
  return _mm256_sqrt_ps(a);
}
SETTRAIN_ALWAYS_INLINE Register<uint64_t> product_of_even(Register<uint32_t> a, Register<uint32_t> b) {
  return reinterpret_cast<Register<uint64_t>>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
constexpr Register<uint32_t> kLowHalves{0, 8, 2, 10, 4, 12, 6, 14};
#else
SETTRAIN_ALWAYS_INLINE Register<float> fused(Register<float> a, Register<float> b, Register<float> c) {
  for (int i = 0; i < 4; ++i) a[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return a;
}
SETTRAIN_ALWAYS_INLINE Register<double> fused(Register<double> a, Register<double> b, Register<double> c) {
  for (int i = 0; i < 2; ++i) a[i] = __builtin_fma(a[i], b[i], c[i]);
  return a;
}
SETTRAIN_ALWAYS_INLINE Register<float> root(Register<float> a) {
  for (int i = 0; i < 4; ++i) a[i] = __builtin_sqrtf(a[i]);
  return a;
}
SETTRAIN_ALWAYS_INLINE Register<uint64_t> product_of_even(Register<uint32_t> a, Register<uint32_t> b) {
  return Register<uint64_t>{uint64_t{a[0]} * b[0], uint64_t{a[2]} * b[2]};
}
constexpr Register<uint32_t> kLowHalves{0, 4, 2, 6};
#endif

/// Type of the masks that comparisons give.
template <class T>
using MaskOf = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

template <class T>
constexpr auto kSignBit = sizeof(T) == 4 ? uint64_t{1} << 31 : uint64_t{1} << 63;

/// 64 bytes of numbers.
template <class T>
struct Lanes {
  Register<T> part[kRegisters];

  Lanes() = default;
  SETTRAIN_ALWAYS_INLINE Lanes(T value) {
    for (auto& p : part) p = value - Register<T>{};  // minus 0, which keeps -0
  }
  static SETTRAIN_ALWAYS_INLINE Lanes load(const T* from) {
    Lanes lanes;
    for (int i = 0; i < kRegisters; ++i) lanes.part[i] = *reinterpret_cast<const Unaligned*>(from + i * kInOne);
    return lanes;
  }
  SETTRAIN_ALWAYS_INLINE void store(T* to) const {
    for (int i = 0; i < kRegisters; ++i) *reinterpret_cast<Unaligned*>(to + i * kInOne) = part[i];
  }

 private:
  static constexpr int kInOne = kRegisterBytes / sizeof(T);
  typedef T Unaligned __attribute__((vector_size(kRegisterBytes), aligned(sizeof(T)), may_alias));
};
using Floats = Lanes<float>;
using Doubles = Lanes<double>;
using Ints = Lanes<int32_t>;
using Words = Lanes<uint32_t>;

#define SETTRAIN_LANES(Result, operation)                                                \
  template <class T>                                                                     \
  SETTRAIN_ALWAYS_INLINE Lanes<Result> operator operation(Lanes<T> a, Lanes<T> b) {      \
    Lanes<Result> result;                                                                \
    for (int i = 0; i < kRegisters; ++i) result.part[i] = a.part[i] operation b.part[i]; \
    return result;                                                                       \
  }                                                                                      \
  template <class T>                                                                     \
  SETTRAIN_ALWAYS_INLINE Lanes<Result> operator operation(Lanes<T> a, T b) {             \
    return a operation Lanes<T>(b);                                                      \
  }
SETTRAIN_LANES(T, +)
SETTRAIN_LANES(T, -)
SETTRAIN_LANES(T, *)
SETTRAIN_LANES(T, /)
SETTRAIN_LANES(T, &)
SETTRAIN_LANES(T, |)
SETTRAIN_LANES(T, ^)
SETTRAIN_LANES(T, <<)
SETTRAIN_LANES(T, >>)
SETTRAIN_LANES(MaskOf<T>, ==)
SETTRAIN_LANES(MaskOf<T>, !=)
SETTRAIN_LANES(MaskOf<T>, >)
SETTRAIN_LANES(MaskOf<T>, >=)
#undef SETTRAIN_LANES

/// Eight numbers of type float or double as doubles, and back.
template <class T>
using Narrow __attribute__((vector_size(kRegisterBytes / sizeof(double) * sizeof(T)), aligned(sizeof(T)), may_alias)) =
    T;
template <class T>
SETTRAIN_ALWAYS_INLINE Doubles load_doubles(const T* from) {
  constexpr int kInOne = kRegisterBytes / sizeof(double);
  Doubles result;
  for (int i = 0; i < kRegisters; ++i) {
    result.part[i] = __builtin_convertvector(*reinterpret_cast<const Narrow<T>*>(from + i * kInOne), Register<double>);
  }
  return result;
}
template <class T>
SETTRAIN_ALWAYS_INLINE void store_doubles(Doubles from, T* to) {
  constexpr int kInOne = kRegisterBytes / sizeof(double);
  for (int i = 0; i < kRegisters; ++i) {
    *reinterpret_cast<Narrow<T>*>(to + i * kInOne) = __builtin_convertvector(from.part[i], Narrow<T>);
  }
}

/// The bits of some lanes as lanes of To.
template <class To, class From>
SETTRAIN_ALWAYS_INLINE Lanes<To> bits_as(Lanes<From> lanes) {
  Lanes<To> result;
  for (int i = 0; i < kRegisters; ++i) result.part[i] = reinterpret_cast<Register<To>>(lanes.part[i]);
  return result;
}

/// `a` where the mask is set, else `b`.
template <class T>
SETTRAIN_ALWAYS_INLINE Lanes<T> choose(Lanes<MaskOf<T>> mask, Lanes<T> a, Lanes<T> b) {
  Lanes<T> result;
  for (int i = 0; i < kRegisters; ++i) result.part[i] = mask.part[i] ? a.part[i] : b.part[i];
  return result;
}
template <class T>
SETTRAIN_ALWAYS_INLINE Lanes<T> larger(Lanes<T> a, Lanes<T> b) {
  return choose(a > b, a, b);
}
template <class T>
SETTRAIN_ALWAYS_INLINE Lanes<T> smaller(Lanes<T> a, Lanes<T> b) {
  return choose(b > a, a, b);
}

/// All lanes by f: the upper half and the lower, their upper half and their lower, and so on.
template <class T, class F>
SETTRAIN_ALWAYS_INLINE T fold(Lanes<T> lanes, const F& f) {
  T value[64 / sizeof(T)];
  lanes.store(value);
#pragma GCC unroll 4
  for (int half = 32 / sizeof(T); half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) value[i] = f(value[i], value[i + half]);
  }
  return value[0];
}
template <class T>
SETTRAIN_ALWAYS_INLINE T sum_of(Lanes<T> lanes) {
  return fold(lanes, [](T a, T b) SETTRAIN_INLINE_LAMBDA { return a + b; });
}
template <class T>
SETTRAIN_ALWAYS_INLINE T largest_of(Lanes<T> lanes) {
  return fold(lanes, [](T a, T b) SETTRAIN_INLINE_LAMBDA { return a > b ? a : b; });
}
template <class T>
SETTRAIN_ALWAYS_INLINE T smallest_of(Lanes<T> lanes) {
  return fold(lanes, [](T a, T b) SETTRAIN_INLINE_LAMBDA { return a < b ? a : b; });
}

/// Bit i: whether lane i of the mask is set.
SETTRAIN_ALWAYS_INLINE uint32_t bits_of(Ints mask) {
  uint32_t bits = 0;
#if defined(__AVX512F__)
  bits = _mm512_movepi32_mask(reinterpret_cast<__m512i>(mask.part[0]));
#elif defined(__AVX2__)
  for (int i = 0; i < kRegisters; ++i) {
    bits |= static_cast<uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(mask.part[i]))) << 8 * i;
  }
#else
  for (int i = 0; i < kLanes; ++i) bits |= static_cast<uint32_t>(mask.part[i / 4][i % 4] & 1) << i;
#endif
  return bits;
}

SETTRAIN_ALWAYS_INLINE uint32_t bits_of(Lanes<int64_t> mask) {
  uint32_t bits = 0;
#if defined(__AVX512F__)
  bits = _mm512_movepi64_mask(reinterpret_cast<__m512i>(mask.part[0]));
#elif defined(__AVX2__)
  for (int i = 0; i < kRegisters; ++i) {
    bits |= static_cast<uint32_t>(_mm256_movemask_pd(reinterpret_cast<__m256d>(mask.part[i]))) << 4 * i;
  }
#else
  for (int i = 0; i < 8; ++i) bits |= static_cast<uint32_t>(mask.part[i / 2][i % 2] & 1) << i;
#endif
  return bits;
}

/// The operations of philox() and normal() on lanes.
struct LaneArithmetic {
  using Float = Floats;
  using Int = Ints;
  using Word = Words;

  static SETTRAIN_ALWAYS_INLINE Floats add(Floats a, Floats b) { return a + b; }
  static SETTRAIN_ALWAYS_INLINE Floats mul(Floats a, Floats b) { return a * b; }
  static SETTRAIN_ALWAYS_INLINE Floats fma(Floats a, Floats b, Floats c) {
    for (int i = 0; i < kRegisters; ++i) c.part[i] = fused(a.part[i], b.part[i], c.part[i]);
    return c;
  }
  static SETTRAIN_ALWAYS_INLINE Doubles fma(Doubles a, Doubles b, Doubles c) {
    for (int i = 0; i < kRegisters; ++i) c.part[i] = fused(a.part[i], b.part[i], c.part[i]);
    return c;
  }
  static SETTRAIN_ALWAYS_INLINE Floats sqrt(Floats a) {
    for (auto& part : a.part) part = root(part);
    return a;
  }
  static SETTRAIN_ALWAYS_INLINE Floats from_bits(Ints bits) { return bits_as<float>(bits); }
  static SETTRAIN_ALWAYS_INLINE Ints to_bits(Floats value) { return bits_as<int32_t>(value); }
  static SETTRAIN_ALWAYS_INLINE Ints as_int(Words word) { return bits_as<int32_t>(word); }
  static SETTRAIN_ALWAYS_INLINE Floats to_float(Ints value) {
    Floats result;
    for (int i = 0; i < kRegisters; ++i) {
      result.part[i] = __builtin_convertvector(value.part[i], Register<float>);
    }
    return result;
  }
  static SETTRAIN_ALWAYS_INLINE void multiply(uint32_t factor, Words words, Words& high, Words& low) {
    const Register<uint32_t> factors = Register<uint32_t>{} + factor;
    for (int i = 0; i < kRegisters; ++i) {
      const auto wide = reinterpret_cast<Register<uint64_t>>(words.part[i]);
      const auto even = reinterpret_cast<Register<uint32_t>>(product_of_even(words.part[i], factors));
      const auto odd = reinterpret_cast<Register<uint32_t>>(
          product_of_even(reinterpret_cast<Register<uint32_t>>(wide >> 32), factors));
      low.part[i] = __builtin_shuffle(even, odd, kLowHalves);
      high.part[i] = __builtin_shuffle(even, odd, kLowHalves + 1);
    }
  }
};

/// The polynomial with these coefficients, highest power first, at x: even and odd powers on their own, which halves
/// the chain of operations that wait for each other.
template <class T, int kSize>
SETTRAIN_ALWAYS_INLINE Lanes<T> polynomial_at(Lanes<T> x, const T (&coefficients)[kSize]) {
  static_assert(kSize % 2 == 0);
  const Lanes<T> square = x * x;
  Lanes<T> odd(coefficients[0]), even(coefficients[1]);
  for (int i = 2; i < kSize; i += 2) {
    odd = LaneArithmetic::fma(odd, square, Lanes<T>(coefficients[i]));
    even = LaneArithmetic::fma(even, square, Lanes<T>(coefficients[i + 1]));
  }
  return LaneArithmetic::fma(odd, x, even);
}

/// Hands out the memory that a kernel works in. One list of arrays then says where each lies, and, without memory
/// (null), how much all need.
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
