// Which checkpoint is better: the best epoch so far, by each metric that a run selects on.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "metrics/metric.h"
#include "src/checkpoint/checkpoint.h"

namespace settrain {

/// The tensor of a checkpoint that holds a metric's best epoch: "selection.val/top5".
std::string selection_tensor(const std::string& metric);

/// The best epoch by one metric so far.
struct BestEpoch {
  std::string metric;  // with its split, "val/top5"
  double value = 0;
  int64_t epoch = 0;  // completed epochs; 0: none yet
};

/// The papers select a checkpoint per metric and K from one run.
class Selection {
 public:
  /// `select`: the config's; RunFolder::kLast among it is always kept, and no metric.
  explicit Selection(const std::vector<std::string>& select);

  /// Takes the values after `epoch` epochs, named with their split. Returns the indices in
  /// best() of the metrics that became better, see is_better(); an equal value keeps the earlier epoch, and a NaN is
  /// never better.
  std::vector<size_t> update(int64_t epoch, std::span<const MetricValue> values);

  /// Adds the tensors "selection.METRIC": float64 [2], value and epoch.
  void add_to(Checkpoint& checkpoint) const;

  /// Takes over what add_to() added; a metric of which the checkpoint says nothing stays as it is. Throws RunError for
  /// a tensor of another kind.
  void restore(const Checkpoint& checkpoint);

  /// Forgets the best epoch by the metric: the next value is the best.
  void restart(const std::string& metric);

  const std::vector<BestEpoch>& best() const { return best_; }

 private:
  std::vector<BestEpoch> best_;
};

}  // namespace settrain
