// Gauss-Legendre quadrature.
#pragma once

#include <cstdint>
#include <vector>

namespace settrain {

/// sum_i weights[i] f(nodes[i]) is the integral of f over [-1, 1], exactly for polynomials up to degree 2 n - 1.
struct GaussLegendre {
  std::vector<double> nodes, weights;

  explicit GaussLegendre(int64_t n);
};

/// The rule of n nodes, worked out once.
const GaussLegendre& gauss_legendre(int64_t n);

}  // namespace settrain
