// One batch, as a loss sees it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "losses/ops/label_sets.h"
#include "models/model_output.h"
#include "src/core/noise.h"

namespace settrain {

/// How a loss is computed that has kernels of its own (LossEntry::has_kernels).
enum class LossMethod {
  kFast,      // by its kernels, for the scores that they take
  kUnpruned,  // by its kernels, with noise drawn for every class; the results are the same to the last bit
  kPlain,     // by LibTorch's operations alone, the formula as it reads: what the kernels are measured against
};

/// One batch, as a loss sees it.
struct LossInput {
  ModelOutput output;
  at::Tensor labels;      // [batch] int64 in [0, classes)
  LabelSets label_sets;   // all labels of every sample where the data give several; else undefined
  at::Tensor sample_ids;  // [batch] int64 on the CPU, the training samples' ids
  int64_t epoch = 0;      // from 0
  NoiseKey noise_key;     // seed, step and position: all that a loss' random numbers may depend on

  // For tests and benchmarks, instead of what the loss would take itself:
  LossMethod method = LossMethod::kFast;
  std::optional<at::Tensor> noise;            // [batch, draws, classes] random numbers, finite
  std::optional<at::Tensor> estimate_logits;  // [batch, classes] a loss' own estimates of the samples' labels
};

}  // namespace settrain
