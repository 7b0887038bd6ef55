#include "losses/ops/quadrature.h"

#include <cmath>
#include <map>
#include <mutex>
#include <numbers>
#include <utility>

namespace settrain {

GaussLegendre::GaussLegendre(int64_t n) {
  const auto degree = static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) {
    // Newton's method on the Legendre polynomial of degree n, from a guess near its i-th root.
    double x = -std::cos(std::numbers::pi * (static_cast<double>(i) + 0.75) / (degree + 0.5)), slope = 1;
    for (int round = 0; round < 100; ++round) {
      double before = 1, value = x;
      for (int64_t m = 2; m <= n; ++m) {
        const auto d = static_cast<double>(m);
        before = std::exchange(value, ((2 * d - 1) * x * value - (d - 1) * before) / d);
      }
      slope = degree * (x * value - before) / (x * x - 1);
      const double step = value / slope;
      x -= step;
      if (std::abs(step) < 1e-16) break;
    }
    nodes.push_back(x);
    weights.push_back(2 / ((1 - x * x) * slope * slope));
  }
}

const GaussLegendre& gauss_legendre(int64_t n) {
  static std::mutex mutex;
  static std::map<int64_t, GaussLegendre> rules;  // whose elements stay where they are
  const std::lock_guard lock(mutex);
  return rules.try_emplace(n, n).first->second;
}

}  // namespace settrain
