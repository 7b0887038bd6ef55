#include "python/ops/batch_losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <algorithm>

#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

LabelSets label_sets_of(const at::Tensor& indicator) {
  const at::Tensor is_label = indicator.ne(0);
  const at::Tensor ends = is_label.sum(1).cumsum(0);
  return {at::cat({at::zeros({1}, ends.options()), ends}), is_label.nonzero().select(1, 1)};
}

/// Fills what `input` says of labels from `labels` [batch, classes]. Throws ShapeError where the loss takes none.
void take_label_matrix(LossInput& input, const MadeLoss& made, const at::Tensor& labels) {
  if (made.takes_mixed_labels) {
    input.label_shares = labels;
    return;
  }
  if (!made.takes_label_sets) throw ShapeError("labels: expected [batch] integers, got 2 dimensions");
  check_shape("labels", labels.sizes(), {input.output.scores.size(0), input.output.scores.size(1)});
  // On CUDA the question would stall every step.
  const bool is_asked = labels.is_cpu() && labels.scalar_type() != at::kBool;
  if (is_asked && labels.ne(0).logical_and(labels.ne(1)).any().item<bool>()) {
    throw ShapeError("labels: expected 0 and 1, got other numbers: these losses take no probabilities");
  }
  input.label_sets = label_sets_of(labels);
  input.labels = labels.ne(0).to(at::kByte).argmax(1);
}

/// Throws ShapeError for labels that the loss does not take.
LossInput input_of(const MadeLoss& made, const Scores& from, const Arguments& arguments) {
  LossInput input;
  input.output.scores = from.scores;
  if (from.scores_multi) input.output.scores_multi = *from.scores_multi;
  if (from.estimates) input.estimate_logits = from.estimates->to(dtype_of_losses(*from.estimates));
  if (arguments.labels.dim() == 2) {
    take_label_matrix(input, made, arguments.labels);
  } else {
    input.labels = arguments.labels;
  }
  input.noise = arguments.noise;
  input.noise_key.seed = static_cast<uint64_t>(arguments.seed);
  if (!arguments.step) return input;
  // Reading it back from a GPU would stall every step. Kernels read it there.
  if (from.scores.is_cuda() && arguments.step->device() == from.scores.device()) {
    input.noise_key.step_on_device = arguments.step->const_data_ptr<int64_t>();
  } else {
    input.noise_key.step = arguments.step->item<int64_t>();
  }
  return input;
}

/// [0] losses of no samples, of which autograd has a gradient to compute. Throws ShapeError for other shapes.
at::Tensor losses_of_none(const Scores& from, const at::Tensor& labels, int64_t num_classes) {
  at::Tensor sum;
  for (const at::Tensor& scores : from.tensors()) {
    check_shape("scores", scores.sizes(), {0, num_classes});
    const at::Tensor rows = scores.to(dtype_of_losses(scores)).sum(1);
    sum = sum.defined() ? sum + rows : rows;
  }
  if (labels.dim() == 1) {
    check_shape("labels", labels.sizes(), {0});
  } else {
    check_shape("labels", labels.sizes(), {0, num_classes});
  }
  return sum;
}

/// [batch] the losses of samples of which none is ignored.
at::Tensor losses_of_all(const MadeLoss& made, const Scores& from, const Arguments& arguments) {
  if (from.scores.size(0) == 0) return losses_of_none(from, arguments.labels, from.scores.size(1));
  return (*made.loss)(input_of(made, from, arguments)).per_sample;
}

/// [batch] the losses of samples of which only those with `is_kept`, [batch] bool, take part; 0 for the others. Noise
/// is a function of the row, so all rows stay.
at::Tensor losses_by_row(const MadeLoss& made, const Scores& from, const Arguments& arguments,
                         const at::Tensor& is_kept) {
  Arguments all = arguments;
  all.labels = at::where(is_kept, arguments.labels, 0);
  return at::where(is_kept, losses_of_all(made, from, all), 0);
}

/// [batch] the losses of samples of which only `rows`, int64 in ascending order, take part; 0 for the others.
at::Tensor losses_of_rows(const MadeLoss& made, const Scores& from, const Arguments& arguments,
                          const at::Tensor& rows) {
  const int64_t batch = from.scores.size(0);
  for (const at::Tensor& scores : from.tensors()) check_shape("scores", scores.sizes(), {batch, kAnySize});
  const auto selected = [&](const at::Tensor& tensor) { return tensor.index_select(0, rows); };
  const auto selected_where_given = [&](const OptionalTensor& tensor) {
    return tensor ? OptionalTensor(selected(*tensor)) : std::nullopt;
  };
  Arguments part = arguments;
  part.labels = selected(arguments.labels);
  const Scores kept{selected(from.scores), selected_where_given(from.scores_multi),
                    selected_where_given(from.estimates)};
  const at::Tensor losses = losses_of_all(made, kept, part);
  return at::zeros({batch}, losses.options().requires_grad(false)).index_copy(0, rows, losses);
}

/// Python raises TypeError for labels [batch] of another kind.
at::Tensor as_int64(const at::Tensor& labels) {
  TORCH_CHECK_TYPE(at::isIntegralType(labels.scalar_type(), /*includeBool=*/false), "labels: expected integers, got ",
                   labels.scalar_type());
  return labels.to(at::kLong);
}

/// The scores with finite numbers in the rows that are ignored: 0 times the gradient of a NaN is NaN.
Scores without_ignored(const Scores& from, const at::Tensor& is_kept) {
  const auto cleaned = [is_ignored = is_kept.logical_not().unsqueeze(1)](const at::Tensor& scores) {
    check_shape("scores", scores.sizes(), {is_ignored.size(0), kAnySize});
    return scores.masked_fill(is_ignored, 0);
  };
  const auto cleaned_where_given = [&](const OptionalTensor& scores) {
    return scores ? OptionalTensor(cleaned(*scores)) : std::nullopt;
  };
  return {cleaned(from.scores), cleaned_where_given(from.scores_multi), cleaned_where_given(from.estimates)};
}

/// How many of labels [batch] int64 on the CPU are ignored.
int64_t count_ignored(const at::Tensor& labels, int64_t ignore_index) {
  const at::Tensor contiguous = labels.contiguous();
  const auto* const label = contiguous.const_data_ptr<int64_t>();
  return std::count(label, label + contiguous.numel(), ignore_index);
}

}  // namespace

at::ScalarType dtype_of_losses(const at::Tensor& scores) {
  return scores.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

bool is_traced(const at::Tensor& scores) {
  return scores.is_meta() || scores.key_set().has(c10::DispatchKey::Python) || c10::impl::dispatch_mode_enabled();
}

at::Tensor losses_of(const MadeLoss& made, const Scores& from, Arguments arguments) {
  if (arguments.labels.dim() != 1) return losses_of_all(made, from, arguments);
  arguments.labels = as_int64(arguments.labels);
  const at::Tensor labels = arguments.labels;
  if (labels.device() != from.scores.device()) {
    throw ShapeError("labels: expected them on " + from.scores.device().str() + ", got " + labels.device().str());
  }
  check_shape("labels", labels.sizes(), {from.scores.size(0)});
  if (labels.is_cpu() && count_ignored(labels, arguments.ignore_index) == 0)
    return losses_of_all(made, from, arguments);
  const at::Tensor is_kept = labels.ne(arguments.ignore_index);
  const bool has_noise = arguments.step || arguments.noise;
  if (made.couples_samples || (labels.is_cpu() && !has_noise))
    return losses_of_rows(made, from, arguments, is_kept.nonzero().squeeze(1));
  return losses_by_row(made, without_ignored(from, is_kept), arguments, is_kept);  // selecting rows would stall a GPU
}

at::Tensor reduced(const at::Tensor& losses, const Arguments& arguments, const std::string& reduction) {
  if (reduction == "none") return losses;
  if (reduction == "sum") return losses.sum();
  if (arguments.labels.dim() != 1) return losses.mean();
  const at::Tensor labels = arguments.labels.to(at::kLong);  // narrow ones would wrap ignore_index around
  const bool can_be_read = labels.is_cpu() && !is_traced(labels);
  if (can_be_read && count_ignored(labels, arguments.ignore_index) == 0) return losses.mean();
  return losses.sum() / labels.ne(arguments.ignore_index).sum();
}

}  // namespace settrain
