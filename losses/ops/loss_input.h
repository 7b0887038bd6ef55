// The data that a loss is built from, and one batch as a loss sees it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "models/model_output.h"
#include "src/core/noise.h"

namespace settrain {

/// The training data, as far as a loss is built from them.
struct LossContext {
  int64_t num_classes;
  std::vector<int64_t> class_counts;  // [classes] training labels of every class, label noise included
  std::vector<int64_t> train_ids;     // [training samples] their ids, as in LossInput::sample_ids
  std::vector<int64_t> train_labels;  // [training samples] label noise included
  uint64_t seed = 0;                  // for random initial values
  int64_t epochs = 0;                 // of the run, for numbers that change by epoch; 0: they have their last values
};

/// The label sets of a batch, one after the other: sample i has classes[offsets[i]] to classes[offsets[i + 1] - 1]. A
/// class named twice counts once.
struct LabelSets {
  at::Tensor offsets;  // [batch + 1] int64, from 0
  at::Tensor classes;  // [labels of the batch] int64 in [0, classes)

  bool defined() const { return offsets.defined(); }
};

/// How a loss is computed that has kernels of its own (LossEntry::has_kernels).
enum class LossMethod {
  kFast,      // by its kernels, for the scores that they take
  kUnpruned,  // by its kernels, with noise drawn for every class; the results are the same to the last bit
  kPlain,     // by LibTorch's operations alone, the formula as it reads: the reference for the kernels
};

struct LossInput {
  ModelOutput output;
  at::Tensor labels;        // [batch] int64 in [0, classes)
  LabelSets label_sets;     // all labels of every sample where the data give several; else undefined
  at::Tensor label_shares;  // [batch, classes] float, the probability of each class as the label, in place of `labels`
  at::Tensor sample_ids;    // [batch] int64 on the CPU, the training samples' ids
  int64_t epoch = 0;        // from 0
  NoiseKey noise_key;       // seed, step and position: a loss' random numbers depend on nothing else

  // For tests and benchmarks, in place of what the loss would take itself:
  LossMethod method = LossMethod::kFast;
  std::optional<at::Tensor> noise;  // [batch, draws, classes or, for some losses, wrong classes] random numbers, finite
  std::optional<at::Tensor> estimate_logits;  // [batch, classes] a loss' own estimates of the samples' labels
};

/// Checks the labels, and the label sets where there are some, against output.scores [batch, classes]; or the label
/// shares alone. Throws ShapeError for other shapes, dtypes and devices; on the CPU also for an empty set, a class out
/// of range, and shares that are no probabilities.
void check_labels(const LossInput& input);

/// [batch, classes] in the dtype of `scores`: 1 for the classes of a sample's set, 0 elsewhere. Without sets, a
/// sample's set is its label, of `labels` [batch].
at::Tensor label_indicator(const LabelSets& sets, const at::Tensor& labels, const at::Tensor& scores);

}  // namespace settrain
