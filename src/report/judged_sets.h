// The sets of classes that a metric judged.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "metrics/entries.h"

namespace settrain {

/// How a run answers with sets.
struct AnswerOptions {
  AverageKOptions average_k;
  TopkAccuracyOptions top_k;
  config::Texts select;  // "val/macro_avg5": which of several K is meant
};

struct JudgedSets {
  std::string name;                   // of the metric that judges them: "avg5", "top5"
  at::Tensor in_set;                  // [samples, classes] bool
  at::Tensor probabilities;           // [samples, classes] in [0, 1]: softmax of the scores, or their sigmoid
  bool is_sigmoid = false;            // where eval.average_k_score says so
  std::optional<double> threshold{};  // of average-K: lambda
};

/// The sets of the K that `select` names, else of the largest K: of eval.average_k as average_k_values() decides them;
/// where that is empty of eval.top_k, the K largest scores, ties going to the lower class. Throws std::invalid_argument
/// where both are empty.
JudgedSets judged_sets(const AnswerOptions& rule, const SplitScores& split, const MetricContext& context);

}  // namespace settrain
