#include "metrics/superclass_accuracy.h"

#include <ATen/ops/tensor.h>

#include "metrics/class_hits.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

const char* const kTop1Superclass = "top1_superclass";

}  // namespace

config::Keys SuperclassAccuracyOptions::keys() {
  return {config::key("superclass_accuracy", &SuperclassAccuracyOptions::superclass_accuracy, false,
                      "Measures top1_superclass, whether the class with the largest score has the label's superclass, "
                      "such as the genus of a species; and macro_top1_superclass (mean over classes), "
                      "few_top1_superclass, medium_top1_superclass and many_top1_superclass. The data set needs "
                      "superclasses, its own or of data.superclasses.")};
}

std::vector<std::string> SuperclassAccuracy::names() const {
  if (!options_.superclass_accuracy) return {};
  return accuracy_names(kTop1Superclass, bins_);
}

ResultsOfSamples SuperclassAccuracy::prepare(const SplitScores& split, const MetricContext& context) const {
  if (!options_.superclass_accuracy) return [](const at::Tensor&) { return EvaluationResult(); };
  const int64_t classes = split.scores.size(1);
  const at::Tensor superclass_of = at::tensor(context.superclass_of, at::kLong).to(split.scores.device());
  check_shape("superclasses of the classes", superclass_of.sizes(), {classes});
  const at::Tensor all_found =
      superclass_of.index_select(0, split.scores.argmax(1)).eq(superclass_of.index_select(0, split.labels));
  return [=, this, all_labels = split.labels, train_counts = context.train_counts](const at::Tensor& samples) {
    const ClassHits counts = count_hits(of_samples(all_found, samples), of_samples(all_labels, samples), classes);
    return EvaluationResult{accuracies(kTop1Superclass, counts, train_counts, bins_), {}};
  };
}

}  // namespace settrain
