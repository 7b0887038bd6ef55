#!/usr/bin/env python3
"""Fits the two polynomials of src/core/normal.h and that of losses/kernels/cpu/exact_topk_lanes.cpp, and prints their coefficients.
Needs numpy and mpmath.

    python scripts/fit_normal.py

z(q), the standard normal's upper quantile for q in [2^-33, 1/2], is computed as r + g(r) with r = sqrt(-2 ln q). Both ln and
g are polynomials by Chebyshev interpolation, whose error is within a small factor of the best polynomial's.
"""

import mpmath
import numpy as np
from numpy.polynomial import chebyshev

mpmath.mp.dps = 40
LN_DEGREE = 9  # of ln(1 + x)/x on [sqrt(1/2) - 1, sqrt(2) - 1]
TAIL_DEGREE = 15  # of g, in y = (r - CENTRE) / HALF_WIDTH
R_MIN, R_MAX = float(mpmath.sqrt(2 * mpmath.log(2))), float(mpmath.sqrt(66 * mpmath.log(2)))
CENTRE, HALF_WIDTH = (R_MIN + R_MAX) / 2, (R_MAX - R_MIN) / 2
MILLS_DEGREE, MILLS_SHIFT, MILLS_END = 18, 4, 12  # of (z + 4) exp(z^2/2) Q(z) in (z - 4)/(z + 4), for z in [0, 12]


def upper_quantile(r):
    """z with Q(z) = exp(-r^2/2), by Newton's method on ln Q."""
    target = -mpmath.mpf(r) ** 2 / 2
    z = mpmath.mpf(r) - 1 / (mpmath.mpf(r) + 0.5)
    for _ in range(60):
        tail = mpmath.erfc(z / mpmath.sqrt(2)) / 2
        step = (mpmath.log(tail) - target) * tail / (mpmath.exp(-z * z / 2) / mpmath.sqrt(2 * mpmath.pi))
        z += step
        if abs(step) < mpmath.mpf(10) ** -30:
            break
    return z


def ln_over_x(x):
    return mpmath.log1p(mpmath.mpf(x)) / mpmath.mpf(x)


def scaled_tail(u):
    z = MILLS_SHIFT * (1 + mpmath.mpf(u)) / (1 - mpmath.mpf(u))
    return (z + MILLS_SHIFT) * mpmath.exp(z * z / 2) * mpmath.erfc(z / mpmath.sqrt(2)) / 2


def interpolate(function, low, high, degree):
    """Coefficients in powers of the variable scaled to [-1, 1], and the largest error seen."""

    def value(u):
        return float(function((low + high) / 2 + (high - low) / 2 * u))

    nodes = chebyshev.chebpts1(degree + 1)
    powers = chebyshev.cheb2poly(chebyshev.chebfit(nodes, [value(u) for u in nodes], degree))
    dense = np.linspace(-1, 1, 501)
    error = np.abs(np.polyval(powers[::-1], dense) - [value(u) for u in dense])
    return powers, error.max()


def shifted(powers, low, high):
    """From powers of the scaled variable to powers of the variable itself."""
    to_scaled = np.polynomial.Polynomial([-(low + high) / (high - low), 2 / (high - low)])
    return np.polynomial.Polynomial(powers)(to_scaled).coef


def show(name, powers, error):
    numbers = ", ".join(f"{np.float32(c):.9e}F" for c in powers[::-1])
    print(f"{name}, to {error:.1e}:\n{numbers}")


def main():
    low, high = np.sqrt(0.5) - 1, np.sqrt(2.0) - 1
    powers, error = interpolate(ln_over_x, low, high, LN_DEGREE)
    show("ln(1 + x)/x", shifted(powers, low, high), error)
    powers, error = interpolate(lambda r: upper_quantile(r) - r, R_MIN, R_MAX, TAIL_DEGREE)
    show("g(y)", powers, error)
    print(f"y = r * {np.float32(1 / HALF_WIDTH):.9e}F + {np.float32(-CENTRE / HALF_WIDTH):.9e}F")
    low, high = -1.0, (MILLS_END - MILLS_SHIFT) / (MILLS_END + MILLS_SHIFT)
    powers, error = interpolate(scaled_tail, low, high, MILLS_DEGREE)
    print(f"(z + {MILLS_SHIFT}) exp(z^2/2) Q(z), to {error:.1e}:")
    print(", ".join(f"{c:.17e}" for c in shifted(powers, low, high)[::-1]))


if __name__ == "__main__":
    main()
