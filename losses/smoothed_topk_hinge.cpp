#include "losses/smoothed_topk_hinge.h"

#include <ATen/ops/logaddexp.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "losses/polynomials.h"
#include "losses/rowwise.h"
#include "losses/score_ops.h"
#include "losses/set_size.h"

namespace settrain {
namespace {

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

}  // namespace

at::Tensor SmoothedTopkHinge::per_sample(const LossInput& input) {
  const at::Tensor& scores = input.output.scores;
  const at::Tensor& labels = input.labels;
  const at::Tensor smoothed =
      rowwise(scores, /*doubles_per_row=*/4 * scores.size(1) * (k_ + 1), [&](const at::Tensor& s, int64_t first) {
        return smooth(s, labels.slice(0, first, first + s.size(0)), k_, options_);
      });
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
      .make = [](const config::Config& config, const LossContext& context) {
        return std::make_unique<SmoothedTopkHinge>(context.num_classes, read_set_size(config, context.num_classes),
                                                   config.read<Options>("loss"));
      }};
}

}  // namespace settrain
