// The k-th largest score and the sum of the k largest, smoothed by normal noise: estimated from draws, or exactly. All
// are differentiable operators, useful beyond the losses of this folder; docs/functional.md shows them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "losses/ops/loss_input.h"
#include "src/core/noise.h"

namespace settrain {

/// [batch, draws, classes] float32 standard normals on `device`: normal(noise_word(...)) of src/core, a function of
/// (seed, step, key.first_position + row, class, draw) and of `draws`, the same to the last bit on the CPU and on CUDA.
/// Throws ConfigError where step or position do not fit 32 bits.
at::Tensor gaussian_noise(const NoiseKey& key, int64_t batch, int64_t draws, int64_t classes, at::Device device);

struct SmoothedTopk {
  at::Tensor values;  // [batch], dtype of the scores, with a gradient to them
  at::Tensor chosen;  // [batch, draws] int64: the class that has the rank in each draw
};

/// The mean over M draws of the element of rank `rank` of s + epsilon z_m (Garcin et al., ICML 2022, eq. 11 with rank =
/// K + 1; thesis eq. 4.11):
///
///     t(s) = (1/M) sum_m (s + epsilon z_m)_[rank]
///
/// `scores` [batch, classes] float32 or float64; `noise` [batch, draws, classes] standard normals, no gradient, cast to
/// the dtype of the scores; `rank` in [1, classes], 1: the largest; `epsilon` >= 0 in units of the scores. Ties: the
/// lower class comes first. Draws are summed in order. Gradient: dt/ds_j = (1/M) times how often class j is chosen, so
/// that it sums to 1; for fixed noise it is the exact derivative wherever no two perturbed scores tie. A row that holds
/// a NaN has the value NaN. Throws ShapeError.
SmoothedTopk smoothed_topk(const at::Tensor& scores, const at::Tensor& noise, int64_t rank, double epsilon);

/// The mean over M draws of the sum of the k largest elements of s + epsilon z_m (thesis eq. 4.11, an estimate of
/// eq. 4.6; smoothed_topk() is the difference of the sums of k and k - 1 with the same noise):
///
///     (1/M) sum_m sum_{r <= k} (s + epsilon z_m)_[r]
///
/// Arguments, ties and NaN as in smoothed_topk(), `k` in [1, classes]. [batch], dtype of the scores. Gradient: the
/// share of the draws in which a class is among the k largest (thesis eq. 4.7), so that it sums to k.
at::Tensor smoothed_topk_sum(const at::Tensor& scores, const at::Tensor& noise, int64_t k, double epsilon);

/// Nodes and weights of Gauss-Legendre quadrature: sum_i weights[i] f(nodes[i]) is the integral of f over [-1, 1],
/// exactly for polynomials up to degree 2 n - 1.
struct GaussLegendre {
  std::vector<double> nodes, weights;

  explicit GaussLegendre(int64_t n);
};

/// E[(s + epsilon z)_[rank]], z standard normal: [batch], dtype of the scores, with a gradient to them (Garcin et al.,
/// ICML 2022, eq. 8 with rank = K + 1; thesis eq. 4.8). smoothed_topk() estimates it from draws; here it is an
/// integral.
///
/// `scores` [batch, classes] float32 or float64; `rank` in [1, classes], 1: the largest; `epsilon` >= 0 in units of
/// the scores, 0: the rank itself; `nodes` of a Gauss-Legendre rule: 32 give the value to 1e-8 epsilon, 64 to 1e-12.
/// Throws ShapeError.
///
/// How it works: the number N(t) of classes with s_j + epsilon z_j > t is a sum of independent events, and
///
///     E = a + integral_a^b P(N(t) >= rank) dt
///
/// where [a, b] is the window in which that probability falls from 1 to 0. Gradient: the integral over t of the density
/// of s_j + epsilon z_j times the probability that rank - 1 of the other classes lie above t. That is the probability
/// that class j has the rank, so the gradient sums to 1. All in float64; classes that cannot come into the window are
/// left out.
///
/// It has a kernel on the CPU and, for ranks up to 33, on CUDA; results of float32 scores are then right to about 1e-9
/// epsilon for each thousand classes. LossMethod::kPlain, and ranks and classes whose intermediate values of a row
/// exceed 64 MiB, go through LibTorch's operations.
at::Tensor exact_smoothed_topk(const at::Tensor& scores, int64_t rank, double epsilon, int64_t nodes,
                               LossMethod method = LossMethod::kFast);

}  // namespace settrain
