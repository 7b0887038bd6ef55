#include "losses/smoothed_topk_hinge.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "losses/kernels/smoothed_hinge_kernels.h"
#include "losses/ops/loss_kernels.h"
#include "losses/ops/polynomials.h"
#include "losses/ops/rowwise.h"
#include "losses/ops/score_ops.h"
#include "losses/ops/set_size.h"
#include "losses/ops/with_gradient.h"

#if defined(SETTRAIN_HAS_CUDA)
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace settrain {
namespace {

// In float64, chunks of rows at a time.
at::Tensor smooth(const at::Tensor& scores, const at::Tensor& labels, int64_t k,
                  const SmoothedTopkHingeOptions& options) {
  const at::Tensor scaled = scores.div(static_cast<double>(k) * options.tau);
  const at::Tensor others = scaled.scatter(1, labels.unsqueeze(1), kLogOfNothing);
  const at::Tensor log_sigma = log_elementary_symmetric(others, k);
  const at::Tensor z = log_sigma.select(1, k)
                           .sub(log_sigma.select(1, k - 1))
                           .sub(of_label(scaled, labels))
                           .add(options.alpha / options.tau);
  return at::logaddexp(z, at::zeros_like(z)).mul(options.tau);
}

at::Tensor smooth_plainly(const at::Tensor& scores, const at::Tensor& labels, int64_t k,
                          const SmoothedTopkHingeOptions& options) {
  return rowwise(scores, /*doubles_per_row=*/4 * scores.size(1) * (k + 1), [&](const at::Tensor& s, int64_t first) {
    return smooth(s, labels.slice(0, first, first + s.size(0)), k, options);
  });
}

bool has_kernel(const at::Tensor& scores, int64_t k) {
  // No coefficient of the kernels exceeds the number of sets of k classes, or of half of all: that must be a double.
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
at::Tensor smooth_by_kernel(const at::Tensor& scores, const at::Tensor& labels, int64_t k,
                            const SmoothedTopkHingeOptions& options) {
  const at::Tensor rows = scores.detach().contiguous(), classes = labels.contiguous();
  const SmoothedHinge<T> hinge{rows.const_data_ptr<T>(),
                               classes.const_data_ptr<int64_t>(),
                               rows.size(0),
                               rows.size(1),
                               k,
                               options.tau,
                               options.alpha};
  const at::Tensor losses = at::empty({hinge.batch}, rows.options());
  const at::Tensor gradient = wants_gradient(scores) ? at::empty_like(rows) : at::Tensor();
  T* const losses_data = losses.data_ptr<T>();
  T* const gradient_data = gradient.defined() ? gradient.data_ptr<T>() : nullptr;
  if (rows.is_cpu()) {
    const auto compute = SETTRAIN_PICK(instruction_set(), smoothed_hinge_rows<T>);
    const auto bytes =
        static_cast<size_t>(SETTRAIN_PICK(instruction_set(), smoothed_hinge_workspace)(hinge.classes, k));
    at::parallel_for(0, hinge.batch, std::max<int64_t>(1, 2048 / hinge.classes), [&](int64_t begin, int64_t end) {
      const auto workspace = std::make_unique_for_overwrite<char[]>(bytes);
      compute(hinge, begin, end, workspace.get(), losses_data, gradient_data);
    });
  }
#if defined(SETTRAIN_HAS_CUDA)
  if (rows.is_cuda()) {
    const c10::cuda::CUDAGuard guard(rows.device());
    const at::Tensor scratch = at::empty({smoothed_hinge_scratch(hinge)}, rows.options().dtype(at::kByte));
    launch_smoothed_hinge(hinge, losses_data, gradient_data, scratch.data_ptr(), c10::cuda::getCurrentCUDAStream());
  }
#endif
  return gradient.defined() ? with_gradient(scores, losses, gradient) : losses;
}

}  // namespace

at::Tensor SmoothedTopkHinge::per_sample(const LossInput& input) {
  const at::Tensor& scores = input.output.scores;
  const at::Tensor& labels = input.labels;
  const bool plain = input.method == LossMethod::kPlain || !has_kernel(scores, k_);
  const at::Tensor smoothed = plain ? smooth_plainly(scores, labels, k_, options_)
                              : scores.scalar_type() == at::kDouble
                                  ? smooth_by_kernel<double>(scores, labels, k_, options_)
                                  : smooth_by_kernel<float>(scores, labels, k_, options_);
  if (options_.reference_threshold == 0) return smoothed;
  const auto k = static_cast<double>(k_);
  const at::Tensor gap = ranked(scores, k_).sub(ranked(scores, k_ + 1));
  const at::Tensor hard =
      at::relu(ranked(without_label(scores, labels), k_).sub(of_label(scores, labels)).div(k).add(options_.alpha));
  return at::where(gap.ge(k * options_.tau * std::log(options_.reference_threshold)), hard, smoothed);
}

LossEntry smoothed_topk_hinge_entry() {
  using Options = SmoothedTopkHingeOptions;
  return {
      .name = "smoothed_topk_hinge",
      .help = "Smoothed top-K hinge, with sums over all sets of K classes (Berrada et al., ICLR 2018, eq. 9, 10).",
      .formula =
          "tau log sum_A exp(alpha [y not in A]/tau + sum_{j in A} s_j/(K tau)) - tau log sum_{A: y in A} exp(sum_{j in A} s_j/(K tau)),  |A| = K",
      .keys = {SetSizeOptions::key(5, "ICLR 2018, section 5.1"),
               config::key("tau", &Options::tau, 1.0,
                           "Temperature: the smaller, the nearer to the hinge, and the sparser the gradient. "
                           "Default: ICLR 2018, section 5.1 (CIFAR-100; 0.1 on ImageNet).")
                   .at_least(1e-6)
                   .in("scores"),
               config::key("alpha", &Options::alpha, 1.0, "The margin. Default: ICLR 2018.").at_least(0),
               config::key("reference_threshold", &Options::reference_threshold, 0.0,
                           "1000: the hard hinge where s_[k] - s_[k+1] >= k tau log(1000), as the authors' code has "
                           "it, at the price of a jump; 0: smooth everywhere.")
                   .at_least(0)},
      .requirements = {},
      .make =
          [](const config::Config& config, const LossContext& context) {
            return std::make_unique<SmoothedTopkHinge>(context.num_classes, read_set_size(config, context.num_classes),
                                                       config.read<Options>("loss"));
          },
      .has_kernels = true};
}

}  // namespace settrain
