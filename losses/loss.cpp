#include "losses/loss.h"

#include <ATen/ops/isfinite.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>

#include <cmath>

#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

void check_scores(const char* name, const at::Tensor& scores, int64_t batch, int64_t num_classes) {
  check_shape(name, scores.sizes(), {batch, num_classes});
  const at::ScalarType dtype = scores.scalar_type();
  if (dtype != at::kFloat && dtype != at::kDouble && dtype != at::kHalf && dtype != at::kBFloat16) {
    throw ShapeError(
        fmt::format("{}: expected float32, float64, float16 or bfloat16, got {}", name, at::toString(dtype)));
  }
}

/// [batch] the mean of `losses` [batch, classes] by `shares`. A class without a share has none in an infinite loss.
at::Tensor expectation(const at::Tensor& losses, const at::Tensor& shares) {
  const at::Tensor weights = shares.to(losses.scalar_type());
  // On CUDA the question would stall every step.
  const bool are_finite = losses.is_cpu() && std::isfinite(losses.detach().sum().item<double>());
  return (are_finite ? losses : losses.masked_fill(shares.eq(0), 0)).mul(weights).sum(1);
}

at::Tensor at_least_float32(const at::Tensor& scores) {
  return scores.scalar_type() == at::kDouble ? scores : scores.to(at::kFloat);
}

}  // namespace

LossValue Loss::operator()(const LossInput& input) {
  const ModelOutput& output = input.output;
  if (!output.scores.defined() || output.scores.dim() == 0 || output.scores.size(0) == 0) {
    throw ShapeError("scores: expected [batch, classes] with at least one sample, got none");
  }
  check_scores("scores", output.scores, kAnySize, num_classes_);
  check_labels(input);

  // Autocast would run the operations below in half precision.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  LossInput checked = input;
  checked.output.scores = at_least_float32(output.scores);
  if (output.scores_multi.defined()) {
    check_scores("scores_multi", output.scores_multi, output.scores.size(0), num_classes_);
    checked.output.scores_multi = at_least_float32(output.scores_multi);
  }
  if (input.noise && !at::isfinite(*input.noise).all().item<bool>()) {
    throw ShapeError("noise: expected finite numbers, got a NaN or an infinity");
  }
  at::Tensor losses;
  if (input.label_shares.defined()) {
    losses = every_label(checked);
    if (class_weights_) losses = class_weights_->apply_to_all(losses, input.epoch);
    losses = expectation(losses, input.label_shares);
  } else {
    losses = per_sample(checked);
    if (class_weights_) losses = class_weights_->apply(losses, input.labels, input.epoch);
  }
  return {losses, losses.sum(), losses.size(0)};
}

at::Tensor Loss::every_label(const LossInput& /*input*/) {
  throw ShapeError("labels: this loss takes no probabilities of labels");
}

double Loss::divisor(const at::Tensor& labels, int64_t epoch) const {
  return class_weights_ ? class_weights_->total(labels, epoch) : static_cast<double>(labels.size(0));
}

}  // namespace settrain
