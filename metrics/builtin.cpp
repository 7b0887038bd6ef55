#include "metrics/entries.h"

namespace settrain {

void register_builtin_metrics(MetricRegistry& registry) {
  registry.add(topk_accuracy_entry());
  registry.add(average_k_entry());
  registry.add(superclass_accuracy_entry());
  registry.add(subset_accuracy_entry());
  registry.add(label_sets_entry());
}

}  // namespace settrain
