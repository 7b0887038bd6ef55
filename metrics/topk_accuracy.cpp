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

ResultsOfSamples TopkAccuracy::prepare(const SplitScores& split, const MetricContext& context) const {
  return [this, all_ranks = label_ranks(split.scores, split.labels), all_labels = split.labels,
          classes = split.scores.size(1), train_counts = context.train_counts](const at::Tensor& samples) {
    const at::Tensor ranks = of_samples(all_ranks, samples), labels = of_samples(all_labels, samples);
    EvaluationResult result;
    for (const int64_t k : options_.top_k) {
      const ClassHits counts = count_hits(ranks.lt(k), labels, classes);
      for (MetricValue& value : accuracies(topk_name(k), counts, train_counts, bins_)) {
        result.values.push_back(std::move(value));
      }
    }
    return result;
  };
}

}  // namespace settrain
