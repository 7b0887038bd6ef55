#include "src/train/step_metrics.h"

#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "metrics/entries.h"
#include "metrics/label_rank.h"
#include "src/train/run_options.h"

namespace settrain {

StepMetrics::StepMetrics(const TrainOptions& options)
    : top_k_(options.top_k), gradient_nonzeros_(options.gradient_nonzeros) {
  std::erase(top_k_, 1);
  for (const int64_t k : top_k_) names_.push_back(topk_name(k));
  if (gradient_nonzeros_) names_.emplace_back("gradient_nonzeros");
}

void StepMetrics::watch(const ModelOutput& output) const {
  if (gradient_nonzeros_ && output.prediction().requires_grad()) output.prediction().retain_grad();
}

at::Tensor StepMetrics::sums(const ModelOutput& output, const at::Tensor& labels) const {
  const at::Tensor scores = output.prediction().detach();
  std::vector<at::Tensor> sums;
  if (!top_k_.empty()) {
    const at::Tensor ranks = label_ranks(scores, labels);
    for (const int64_t k : top_k_) sums.push_back(ranks.lt(k).sum().to(at::kDouble));
  }
  if (gradient_nonzeros_) {
    const at::Tensor& gradient = output.prediction().grad();
    sums.push_back(gradient.defined() ? gradient.ne(0).sum().to(at::kDouble)
                                      : at::zeros({}, scores.options().dtype(at::kDouble)));
  }
  return at::stack(sums);
}

}  // namespace settrain
