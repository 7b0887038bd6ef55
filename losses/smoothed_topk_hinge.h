// The smoothed top-K hinge: Berrada, Zisserman, Kumar, "Smooth Loss Functions for Deep Top-k Classification" (ICLR
// 2018).
#pragma once

#include "losses/loss.h"

namespace settrain {

struct SmoothedTopkHingeOptions {
  double tau, alpha;
  double reference_threshold;  // 0: off
};

/// Per sample, A running over the sets of K classes,
///
///     tau log sum_A exp(alpha [y not in A]/tau + sum_{j in A} s_j/(K tau))
///       - tau log sum_{A with y} exp(sum_{j in A} s_j/(K tau))
///     = tau log(1 + exp(alpha/tau + log sigma_K(e) - log sigma_{K-1}(e) - s_y/(K tau))),
///
/// with sigma_i the elementary symmetric polynomials of e = exp((s without y)/(K tau)) (eq. 9, 10). K = 1, alpha = 0,
/// tau = 1 is cross-entropy; for tau -> 0 it tends to topk_hinge_scaled. Smooth, no ties, no kink. Gradient: the
/// expected membership of each class in A, over K, in the first distribution minus that in the second; it sums to 0.
///
/// Computed in float64 from positive terms alone, whatever the dtype of the scores, in O(K classes), by a kernel
/// (kernels/cpu/smoothed_hinge_lanes.cpp) or, where the number of sets overflows a double (on CUDA: for K > 32), by
/// LibTorch's operations in logarithms (polynomials.h). The authors' code divides polynomials in the backward pass,
/// which is inaccurate where they are close, and takes the hard hinge where s_[K] - s_[K+1] >= K tau log(1000);
/// `reference_threshold` = 1000 does the latter, too.
class SmoothedTopkHinge : public Loss {
 public:
  SmoothedTopkHinge(int64_t num_classes, int64_t k, const SmoothedTopkHingeOptions& options)
      : Loss(num_classes), k_(k), options_(options) {}

 protected:
  at::Tensor per_sample(const LossInput& input) override;

 private:
  int64_t k_;
  SmoothedTopkHingeOptions options_;
};

LossEntry smoothed_topk_hinge_entry();

}  // namespace settrain
