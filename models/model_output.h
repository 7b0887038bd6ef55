// A model's answers to a batch.
#pragma once

#include <ATen/core/Tensor.h>

namespace settrain {

struct ModelOutput {
  at::Tensor scores;  // [batch, classes] float logits, or cosines in [-1, 1] from a normalised head
  // [batch, classes] float logits of a second, multi-label head; undefined where there is none.
  at::Tensor scores_multi;
  at::Tensor features;  // [batch, features] float: the head's inputs

  /// The scores that sets are made of: of two heads, the multi-label one's (Garcin's thesis, section 5.5.2: the other
  /// only helps it to learn).
  const at::Tensor& prediction() const { return scores_multi.defined() ? scores_multi : scores; }
};

}  // namespace settrain
