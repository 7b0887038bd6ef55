// The normal distribution's tail and density, eight at a time.
#pragma once

#include "losses/kernels/cpu/exponential.h"

namespace settrain {
namespace {

struct NormalTail {
  Doubles upper, lower;  // P(Z > z), P(Z <= z)
  Doubles bell;          // exp(-z^2/2)
};

/// Each tail to about 3e-14 of itself (3e-15 near 0), down to 1e-30. z may be infinite.
SETTRAIN_ALWAYS_INLINE NormalTail normal_tail(Doubles z) {
  // P(Z > z) = exp(-z^2/2) f((z - 4)/(z + 4))/(z + 4) for z in [0, 12], by scripts/fit_normal.py.
  constexpr double kCoefficients[] = {0,
                                      -1.50739863443501261e-08,
                                      -6.06492419323464184e-09,
                                      3.40462431420544602e-07,
                                      9.33237950942176809e-07,
                                      -7.30721583987717172e-07,
                                      -5.91819006799721190e-06,
                                      7.59464652035684002e-07,
                                      3.51555827312191794e-05,
                                      -1.91685791289675296e-06,
                                      -2.31098485969602534e-04,
                                      1.33345192641365253e-04,
                                      1.63081895806877798e-03,
                                      -3.47969240979055256e-03,
                                      -7.54018900127269819e-03,
                                      6.03965748915819556e-02,
                                      -1.86521857958610315e-01,
                                      3.87137400742219473e-01,
                                      -6.07896641971899965e-01,
                                      7.55285130415750960e-01};
  const Doubles size = smaller(larger(z, Doubles(0.0) - z), Doubles(40.0));
  const Doubles inverse = Doubles(1.0) / (size + 4.0), u = (size - 4.0) * inverse;
  const Doubles bell = exponential(size * size * -0.5);
  const Doubles tail = bell * polynomial_at(u, kCoefficients) * inverse, rest = Doubles(1.0) - tail;
  const auto positive = z >= Doubles(0.0);
  return {choose(positive, tail, rest), choose(positive, rest, tail), bell};
}

}  // namespace
}  // namespace settrain
