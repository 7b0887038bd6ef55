#include "losses/ops/loss_input.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

void check_indices(const char* name, const at::Tensor& indices, int64_t size, const at::Tensor& scores) {
  check_shape(name, indices.sizes(), {size});
  if (indices.scalar_type() != at::kLong) {
    throw ShapeError(fmt::format("{}: expected int64, got {}", name, at::toString(indices.scalar_type())));
  }
  if (indices.device() != scores.device()) {
    throw ShapeError(fmt::format("{}: expected them on {} with the scores, got {}", name, scores.device().str(),
                                 indices.device().str()));
  }
}

void check_label_sets(const LabelSets& sets, const at::Tensor& scores) {
  const int64_t batch = scores.size(0), num_classes = scores.size(1);
  check_indices("label_sets.offsets", sets.offsets, batch + 1, scores);
  check_indices("label_sets.classes", sets.classes, kAnySize, scores);
  if (!scores.is_cpu()) return;
  const at::Tensor all_offsets = sets.offsets.contiguous(), all_classes = sets.classes.contiguous();
  const int64_t* offsets = all_offsets.const_data_ptr<int64_t>();
  const int64_t* classes = all_classes.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < batch; ++i) {
    if (offsets[0] != 0 || offsets[i + 1] <= offsets[i] || offsets[i + 1] > sets.classes.size(0)) {
      throw ShapeError(
          fmt::format("label_sets.offsets: expected at least one label for sample {} among the {} of the "
                      "batch, got those from {} to {}",
                      i, sets.classes.size(0), offsets[i], offsets[i + 1]));
    }
    for (int64_t at = offsets[i]; at < offsets[i + 1]; ++at) {
      if (classes[at] < 0 || classes[at] >= num_classes) {
        throw ShapeError(fmt::format("label_sets.classes[{}]: expected a class from 0 to {} for sample {}, got {}", at,
                                     num_classes - 1, i, classes[at]));
      }
    }
  }
}

void check_label_shares(const at::Tensor& shares, const at::Tensor& scores) {
  constexpr double kRounding = 0.01;  // of half precision
  check_shape("labels", shares.sizes(), {scores.size(0), scores.size(1)});
  if (!shares.is_floating_point()) {
    throw ShapeError(
        fmt::format("labels: expected probabilities in floating point, got {}", at::toString(shares.scalar_type())));
  }
  if (shares.device() != scores.device()) {
    throw ShapeError(fmt::format("labels: expected them on {} with the scores, got {}", scores.device().str(),
                                 shares.device().str()));
  }
  if (!scores.is_cpu()) return;
  const at::ScalarType dtype = shares.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor sums = shares.detach().sum(1, /*keepdim=*/false, dtype);
  if (shares.detach().amin().item<double>() < 0 || !sums.sub(1).abs().lt(kRounding).all().item<bool>()) {
    throw ShapeError("labels: expected probabilities of at least 0, whose sum is 1 for every sample, got others");
  }
}

}  // namespace

void check_labels(const LossInput& input) {
  const at::Tensor& scores = input.output.scores;
  if (input.label_shares.defined()) return check_label_shares(input.label_shares, scores);
  check_indices("labels", input.labels, scores.size(0), scores);
  if (input.label_sets.defined()) check_label_sets(input.label_sets, scores);
  // On CUDA the indexing kernels assert the range: reading labels back would stall every step.
  if (!input.labels.is_cpu()) return;
  const at::Tensor contiguous = input.labels.contiguous();
  const int64_t* label = contiguous.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < scores.size(0); ++i) {
    if (label[i] < 0 || label[i] >= scores.size(1)) {
      throw ShapeError(
          fmt::format("labels[{}]: expected a class from 0 to {}, got {}", i, scores.size(1) - 1, label[i]));
    }
  }
}

at::Tensor label_indicator(const LabelSets& sets, const at::Tensor& labels, const at::Tensor& scores) {
  const c10::NoGradGuard no_grad;
  const at::Tensor indicator = at::zeros_like(scores);
  if (!sets.defined()) return indicator.scatter_(1, labels.unsqueeze(1), 1);
  // With output_size given, repeat_interleave need not wait for the device.
  const at::Tensor rows = at::repeat_interleave(at::arange(scores.size(0), sets.offsets.options()), sets.offsets.diff(),
                                                /*dim=*/0, /*output_size=*/sets.classes.size(0));
  return indicator.index_put_({rows, sets.classes}, at::ones({}, scores.options()));
}

}  // namespace settrain
