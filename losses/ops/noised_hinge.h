// The noised top-K losses' common formula, fused.
#pragma once

#include <ATen/core/Tensor.h>

#include "losses/ops/loss_input.h"
#include "losses/ops/score_ops.h"

namespace settrain {

/// Members of the noised losses' keys.
struct SampledTopkOptions {
  int64_t k;       // 1 <= k < classes
  double epsilon;  // standard deviation of the noise, in units of the scores; kSpreadOfScores: see unit_spread()
  int64_t num_draws;
};

/// Terms of the loss (factor (margin + t - s_y))_+, t the smoothed (K+1)-th largest score.
struct NoisedHingeTerms {
  double margin = 0;        // of every sample, where `margins` is undefined
  at::Tensor margins = {};  // [batch] of the samples, in the dtype of the scores
  double factor = 1;
};

/// [batch] (factor (margin_i + t(s_i) - s_iy))_+ with t as smoothed_topk.h has it, of `scores` [batch, classes] float32
/// or float64, and the labels, the noise key (or the noise) and the method of `input`. Differentiable by the scores
/// and the margins.
/// With epsilon kSpreadOfScores the noise of each sample is as wide as its scores; the gradient is that of the whole
/// formula, so that it also narrows the scores where that lowers t.
///
/// float32 scores go through kernels, on the CPU and, in a build with CUDA kernels, on CUDA: no [batch, draws, classes]
/// tensor exists, and noise is only drawn for classes that may come to rank K + 1 (the losses are the same to the last
/// bit). The rest, and LossMethod::kPlain, go through LibTorch's operations.
at::Tensor noised_hinge(const at::Tensor& scores, const LossInput& input, const SampledTopkOptions& options,
                        const NoisedHingeTerms& terms);

/// [batch] float32 on the CPU: for how many classes the CPU's kernel draws noise, on average over the draws. `scores`
/// [batch, classes] float32.
at::Tensor drawn_classes(const at::Tensor& scores, const SampledTopkOptions& options, const NoiseKey& key);

}  // namespace settrain
