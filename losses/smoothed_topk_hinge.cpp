#include <ATen/ops/empty.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include "losses/entries.h"
#include "losses/kernels/smooth_kernels.h"
#include "losses/ops/loss_kernels.h"
#include "losses/ops/polynomials.h"
#include "losses/ops/score_ops.h"
#include "losses/ops/shared_keys.h"

namespace settrain {
namespace {

struct SmoothedTopkHingeOptions {
  int64_t k;
  double tau, alpha;
  double reference_threshold;  // 0: off
};

at::Tensor smooth(const at::Tensor& scores, const at::Tensor& labels, const SmoothedTopkHingeOptions& options) {
  const int64_t k = options.k;
  const at::Tensor scaled = scores.div(static_cast<double>(k) * options.tau);
  const at::Tensor others = scaled.scatter(1, labels.unsqueeze(1), kLogOfNothing);
  const at::Tensor log_sigma = log_elementary_symmetric(others, k);
  const at::Tensor z = log_sigma.select(1, k)
                           .sub(log_sigma.select(1, k - 1))
                           .sub(of_label(scaled, labels))
                           .add(options.alpha / options.tau);
  return at::logaddexp(z, at::zeros_like(z)).mul(options.tau);
}

at::Tensor smooth_plainly(const at::Tensor& scores, const at::Tensor& labels, const SmoothedTopkHingeOptions& options) {
  return rowwise(scores, /*doubles_per_row=*/4 * scores.size(1) * (options.k + 1),
                 [&](const at::Tensor& s, int64_t first) {
                   return smooth(s, labels.slice(0, first, first + s.size(0)), options);
                 });
}

bool has_smoothed_kernel(const at::Tensor& scores, int64_t k) {
  // No coefficient of the kernels exceeds the number of sets of k classes, or of half of all: a double must hold that.
  const auto classes = static_cast<double>(scores.size(1));
  const double size = std::min(static_cast<double>(k), std::floor(classes / 2));
  const double log_sets = std::lgamma(classes + 1) - std::lgamma(size + 1) - std::lgamma(classes - size + 1);
  if (log_sets > 690) return false;
#if defined(SETTRAIN_HAS_CUDA)
  if (scores.is_cuda()) return has_loss_kernels(scores.device()) && k <= kMostSmoothedHingeK;
#endif
  // The shares of the k highest classes take k^3 operations.
  constexpr int64_t kMost = 128, kMostBytes = int64_t{1} << 26;
  return scores.is_cpu() && k <= kMost &&
         SETTRAIN_PICK(instruction_set(), smoothed_hinge_workspace)(scores.size(1), k) <= kMostBytes;
}

template <class T>
at::Tensor smooth_by_kernel(const at::Tensor& scores, const at::Tensor& labels,
                            const SmoothedTopkHingeOptions& options) {
  const at::Tensor contiguous_labels = labels.contiguous();
  return computed_with_gradient<T>(scores, [&](const at::Tensor& rows, T* losses, T* gradient) {
    const SmoothedHinge<T> hinge{rows.const_data_ptr<T>(),
                                 contiguous_labels.const_data_ptr<int64_t>(),
                                 rows.size(0),
                                 rows.size(1),
                                 options.k,
                                 options.tau,
                                 options.alpha};
    if (rows.is_cpu()) {
      const auto compute = SETTRAIN_PICK(instruction_set(), smoothed_hinge_rows<T>);
      const int64_t bytes = SETTRAIN_PICK(instruction_set(), smoothed_hinge_workspace)(hinge.classes, hinge.k);
      for_rows(hinge.batch, hinge.classes, /*numbers_per_task=*/2048, bytes,
               [&](int64_t begin, int64_t end, void* workspace) {
                 compute(hinge, begin, end, workspace, losses, gradient);
               });
    }
#if defined(SETTRAIN_HAS_CUDA)
    if (rows.is_cuda()) {
      const at::Tensor scratch = at::empty({smoothed_hinge_scratch(hinge)}, rows.options().dtype(at::kByte));
      on_stream_of(rows.device(), [&](CUstream_st* stream) {
        launch_smoothed_hinge(hinge, losses, gradient, scratch.data_ptr(), stream);
      });
    }
#endif
  });
}

/// The smoothed top-K hinge (Berrada, Zisserman, Kumar, "Smooth Loss Functions for Deep Top-k Classification", ICLR
/// 2018). Per sample, A running over the sets of K classes,
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
  SmoothedTopkHinge(const config::Config& config, const LossContext& context)
      : Loss(config, context), options_(read_with_set_size<SmoothedTopkHingeOptions>(config, context.num_classes)) {}

 private:
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor& scores = input.output.scores;
    const at::Tensor& labels = input.labels;
    const bool plain = input.method == LossMethod::kPlain || !has_smoothed_kernel(scores, options_.k);
    const at::Tensor smoothed = plain ? smooth_plainly(scores, labels, options_)
                                : scores.scalar_type() == at::kDouble
                                    ? smooth_by_kernel<double>(scores, labels, options_)
                                    : smooth_by_kernel<float>(scores, labels, options_);
    if (options_.reference_threshold == 0) return smoothed;
    const auto k = static_cast<double>(options_.k);
    const at::Tensor gap = ranked(scores, options_.k).sub(ranked(scores, options_.k + 1));
    const at::Tensor hard = at::relu(
        ranked(without_label(scores, labels), options_.k).sub(of_label(scores, labels)).div(k).add(options_.alpha));
    return at::where(gap.ge(k * options_.tau * std::log(options_.reference_threshold)), hard, smoothed);
  }

  SmoothedTopkHingeOptions options_;
};

}  // namespace

LossEntry smoothed_topk_hinge_entry() {
  using Options = SmoothedTopkHingeOptions;
  return {
      .name = "smoothed_topk_hinge",
      .help = "Smoothed top-K hinge, with sums over all sets of K classes (Berrada et al., ICLR 2018, eq. 9, 10).",
      .formula =
          "tau log sum_A exp(alpha [y not in A]/tau + sum_{j in A} s_j/(K tau)) - tau log sum_{A: y in A} exp(sum_{j in A} s_j/(K tau)),  |A| = K",
      .keys = {set_size_key(&Options::k, 5, "ICLR 2018, section 5.1"),
               config::key("tau", &Options::tau, 1.0,
                           "Temperature: the smaller, the nearer to the hinge, and the sparser the gradient. "
                           "Default: ICLR 2018, section 5.1 (CIFAR-100; 0.1 on ImageNet).")
                   .at_least(1e-6)
                   .in("scores")
                   .by_epoch(),
               config::key("alpha", &Options::alpha, 1.0, "The margin. Default: ICLR 2018.").at_least(0).by_epoch(),
               config::key("reference_threshold", &Options::reference_threshold, 0.0,
                           "1000: the hard hinge where s_[k] - s_[k+1] >= k tau log(1000), as the authors' code has "
                           "it, at the price of a jump; 0: smooth everywhere.")
                   .at_least(0)},
      .make = construct<SmoothedTopkHinge>,
      .has_kernels = true};
}

}  // namespace settrain
