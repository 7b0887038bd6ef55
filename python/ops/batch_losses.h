// The losses of a batch as torch.ops.settrain takes it: samples may be ignored, and there may be none.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "python/ops/made_loss.h"

namespace settrain {

using OptionalTensor = std::optional<at::Tensor>;

/// The arguments of the operators that have no gradient.
struct Arguments {
  at::Tensor labels;     // [batch] integers; or [batch, classes]: label sets, in which what is not 0 is a label, or
                         // the probabilities of labels
  OptionalTensor noise;  // [batch, draws, classes], in place of drawn noise
  OptionalTensor step;   // [] int64, which the noise is a function of
  int64_t seed;
  std::string settings;
  int64_t ignore_index;  // a label whose sample takes no part
};

/// The arguments that losses are differentiated by.
struct Scores {
  at::Tensor scores;
  OptionalTensor scores_multi, estimates;

  /// The given ones of the three, in this order.
  std::vector<at::Tensor> tensors() const {
    std::vector<at::Tensor> given{scores};
    if (scores_multi) given.push_back(*scores_multi);
    if (estimates) given.push_back(*estimates);
    return given;
  }
};

/// Half precision is computed in float32.
at::ScalarType dtype_of_losses(const at::Tensor& scores);

/// Whether these are tensors without data, or operations are recorded by another than autograd: torch.compile.
bool is_traced(const at::Tensor& scores);

/// [batch] losses, 0 where the sample's label is ignored. Throws ShapeError for labels that the loss does not take.
at::Tensor losses_of(const MadeLoss& made, const Scores& from, Arguments arguments);

/// "none": the losses; "sum"; or "mean", over the samples that are not ignored.
at::Tensor reduced(const at::Tensor& losses, const Arguments& arguments, const std::string& reduction);

}  // namespace settrain
