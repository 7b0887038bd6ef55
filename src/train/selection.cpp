#include "src/train/selection.h"

#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/core/error.h"
#include "src/run_folder/run_folder.h"

namespace settrain {

std::string selection_tensor(const std::string& metric) {
  return "selection." + metric;
}

Selection::Selection(const std::vector<std::string>& select) {
  for (const std::string& metric : select) {
    if (metric != RunFolder::kLast) best_.push_back({metric, 0, 0});
  }
}

std::vector<size_t> Selection::update(int64_t epoch, std::span<const MetricValue> values) {
  std::vector<size_t> better;
  for (size_t i = 0; i < best_.size(); ++i) {
    const auto found = std::ranges::find(values, best_[i].metric, &MetricValue::name);
    if (found == values.end()) continue;
    const bool improved = best_[i].epoch == 0 ? !std::isnan(found->value) : is_better(*found, best_[i].value);
    if (!improved) continue;
    best_[i].value = found->value;
    best_[i].epoch = epoch;
    better.push_back(i);
  }
  return better;
}

void Selection::add_to(Checkpoint& checkpoint) const {
  for (const BestEpoch& best : best_) {
    checkpoint.tensors[selection_tensor(best.metric)] =
        at::tensor({best.value, static_cast<double>(best.epoch)}, at::kDouble);
  }
}

void Selection::restart(const std::string& metric) {
  for (BestEpoch& best : best_) {
    if (best.metric == metric) best = {metric, 0, 0};
  }
}

void Selection::restore(const Checkpoint& checkpoint) {
  for (BestEpoch& best : best_) {
    const auto found = checkpoint.tensors.find(selection_tensor(best.metric));
    if (found == checkpoint.tensors.end()) continue;
    const at::Tensor& saved = found->second;
    if (saved.scalar_type() != at::kDouble || saved.numel() != 2) {
      throw RunError(fmt::format("{}: expected two float64 values in '{}'", checkpoint.place(), found->first));
    }
    best.value = saved[0].item<double>();
    best.epoch = static_cast<int64_t>(saved[1].item<double>());
  }
}

}  // namespace settrain
