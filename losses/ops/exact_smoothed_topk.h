// The smoothed k-th largest score without sampling: a differentiable operator, useful beyond the losses of this folder.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "losses/ops/loss_input.h"

namespace settrain {

/// E[(s + epsilon z)_[rank]], z standard normal: [batch], dtype of the scores, with a gradient to them (Garcin et al.,
/// ICML 2022, eq. 8 with rank = K + 1; thesis eq. 4.8). smoothed_topk() estimates it from draws; here it is an
/// integral.
///
/// `scores` [batch, classes] float32 or float64; `rank` in [1, classes], 1: the largest; `epsilon` > 0 in units of the
/// scores; `nodes` of a Gauss-Legendre rule: 32 give the value to 1e-8 epsilon, 64 to 1e-12. Throws ShapeError.
///
/// How it works: the number N(t) of classes with s_j + epsilon z_j > t is a sum of independent events, and
///
///     E = a + integral_a^b P(N(t) >= rank) dt
///
/// where [a, b] is the window in which that probability falls from 1 to 0. Gradient: the integral of the density of
/// s_j + epsilon z_j at t times the probability that rank - 1 of the other classes lie above t, which is that of class
/// j being the one of that rank; so it sums to 1. All in float64; classes that cannot come into the window are left
/// out.
/// By a kernel of its own, on the CPU and, for ranks up to 33, on CUDA; results of float32 scores are then right to
/// about 1e-9 epsilon for each thousand classes. LossMethod::kPlain, and ranks and classes whose intermediate values of
/// a row exceed 64 MiB, go through LibTorch's operations.
at::Tensor exact_smoothed_topk(const at::Tensor& scores, int64_t rank, double epsilon, int64_t nodes,
                               LossMethod method = LossMethod::kFast);

}  // namespace settrain
