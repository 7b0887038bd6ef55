// exp() of eight doubles or sixteen floats, from operations that IEEE 754 defines to the last bit.
#pragma once

#include "losses/kernels/cpu/lanes.h"

namespace settrain {
namespace {

/// exp(x) for x <= 700, to 1.5 units in the last place; 0 below -708.
SETTRAIN_ALWAYS_INLINE Doubles exponential(Doubles x) {
  // x = n ln 2 + r with |r| <= ln(2)/2; adding 1.5 * 2^52 leaves n in the last bits.
  constexpr double kRound = 0x1.8p52, kLn2 = 0x1.62e42fefa39efp-1, kLn2Rest = 0x1.abc9e3b39803fp-56;
  const Doubles least(-708.0), within = larger(x, least);
  const Doubles shifted = LaneArithmetic::fma(within, Doubles(0x1.71547652b82fep0), Doubles(kRound));
  const Doubles n = shifted - kRound;
  const Doubles r = LaneArithmetic::fma(n, Doubles(-kLn2Rest), LaneArithmetic::fma(n, Doubles(-kLn2), within));
  // The Taylor series of degree 13: its rest is below 5e-18 here.
  constexpr double kCoefficients[] = {
      1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
      1.0 / 720,        1.0 / 120,       1.0 / 24,       1.0 / 6,       0.5,          1.0,         1.0};
  const Doubles sum = polynomial_at(r, kCoefficients);
  const Doubles result = bits_as<double>(bits_as<uint64_t>(sum) + (bits_as<uint64_t>(shifted) << uint64_t{52}));
  return choose(x >= least, result, Doubles(0.0));
}

/// exp(x) for x <= 88, to 1.5 units in the last place; 0 below -87.
SETTRAIN_ALWAYS_INLINE Floats exponential(Floats x) {
  constexpr float kRound = 0x1.8p23F, kLn2 = 0x1.62e43p-1F, kLn2Rest = -0x1.05c61p-29F;
  const Floats least(-87.0F), within = larger(x, least);
  const Floats shifted = LaneArithmetic::fma(within, Floats(0x1.715476p0F), Floats(kRound));
  const Floats n = shifted - kRound;
  const Floats r = LaneArithmetic::fma(n, Floats(-kLn2Rest), LaneArithmetic::fma(n, Floats(-kLn2), within));
  // The Taylor series of degree 7: its rest is below 6e-9 here.
  constexpr float kCoefficients[] = {1.0F / 5040, 1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F};
  const Floats sum = polynomial_at(r, kCoefficients);
  const Floats result = bits_as<float>(bits_as<uint32_t>(sum) + (bits_as<uint32_t>(shifted) << uint32_t{23}));
  return choose(x >= least, result, Floats(0.0F));
}

}  // namespace
}  // namespace settrain
