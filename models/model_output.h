// What a model answers for a batch.
#pragma once

#include <ATen/core/Tensor.h>

namespace settrain {

struct ModelOutput {
  at::Tensor scores;  // [batch, classes] float logits, or cosines in [-1, 1] from a normalised head
  at::Tensor
      scores_multi;     // [batch, classes] float logits of a second, multi-label head; undefined where there is none
  at::Tensor features;  // [batch, features] float, what the head saw
};

}  // namespace settrain
