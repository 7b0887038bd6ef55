#include "metrics/topk_accuracy.h"

#include "metrics/class_hits.h"
#include "metrics/label_rank.h"

namespace settrain {

std::string topk_name(int64_t k) {
  return "top" + std::to_string(k);
}

config::Keys TopkAccuracyOptions::keys() {
  return {
      config::key(
          "top_k", &TopkAccuracyOptions::top_k, {1, 5},
          "The K of the top-K accuracies: top5, macro_top5 (mean over classes), few_top5, medium_top5 and many_top5 "
          "(classes with under 20, 20 to 100, over 100 training images).")
          .at_least(1)
          .distinct()};
}

std::vector<std::string> TopkAccuracy::names() const {
  std::vector<std::string> names;
  for (const int64_t k : options_.top_k) {
    for (std::string& name : accuracy_names(topk_name(k), bins_)) names.push_back(std::move(name));
  }
  return names;
}

EvaluationResult TopkAccuracy::compute(const SplitScores& split, const MetricContext& context) const {
  const at::Tensor ranks = label_ranks(split.scores, split.labels);
  EvaluationResult result;
  for (const int64_t k : options_.top_k) {
    const ClassHits counts = count_hits(ranks.lt(k), split.labels, split.scores.size(1));
    for (MetricValue& value : accuracies(topk_name(k), counts, context.train_counts, bins_)) {
      result.values.push_back(std::move(value));
    }
  }
  return result;
}

}  // namespace settrain
