// Golden values of a loss, as they lie in a file.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "losses/ops/loss_input.h"

namespace settrain {

/// One case: inputs and what to expect. Tensors are float64 and on the CPU.
struct LossGoldenCase {
  std::string name;
  std::vector<std::string> overrides;  // the loss' parameters: "loss.k=5"
  std::vector<int64_t> class_counts;   // [classes], or empty
  at::Tensor scores;                   // [batch, classes]
  at::Tensor scores_multi;             // the same of a second head; undefined where there is none
  at::Tensor labels;                   // [batch] int64; of sets, the first of each
  LabelSets label_sets;                // undefined where samples have one label each
  at::Tensor estimate_logits;          // [batch, classes] of labels; undefined where the loss has no estimates
  std::optional<at::Tensor> noise;     // [batch, draws, classes]
  at::Tensor per_sample;               // [batch]
  at::Tensor loss;                     // [] their mean
  at::Tensor gradient;                 // [batch, classes] of the mean; undefined where the formula has none
  at::Tensor gradient_multi;           // the same for scores_multi
  at::Tensor gradient_estimates;       // the same for estimate_logits
  bool is_batch_level = false;         // the samples are coupled: per_sample is one way of sharing out the loss
};

struct LossGolden {
  std::string loss;  // its registry name
  std::vector<LossGoldenCase> cases;
};

/// Reads {"loss": name, "cases": [...]}. Where a case was recorded from code that disagrees with the paper's formula
/// ("agrees_with_formula": false), the formula's values are taken. Throws DataError naming the file and the place in it
/// where something is missing or malformed.
LossGolden read_loss_golden(const std::filesystem::path& file);

}  // namespace settrain
