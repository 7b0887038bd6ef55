// Superclass accuracy: is the first answer of the right kind?
#include <ATen/ops/tensor.h>

#include "metrics/entries.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

const char* const kTop1Superclass = "top1_superclass";

/// "top1_superclass": the share of samples whose largest score is of a class in the superclass of their label, such as
/// a species of the right genus; its mean over classes, over the shot groups and over `bins` (class_hits.h), which are
/// those of the label's class. Of equal scores the smallest class index counts. Needs MetricContext::superclass_of.
class SuperclassAccuracy : public Metric {
 public:
  SuperclassAccuracy(SuperclassAccuracyOptions options, std::vector<CountBin> bins)
      : options_(options), bins_(std::move(bins)) {}

  std::vector<MetricValue> facts() const override {
    return options_.superclass_accuracy ? accuracy_facts(kTop1Superclass, bins_) : std::vector<MetricValue>();
  }

  ResultsOfSamples prepare(const SplitScores& split, const MetricContext& context) const override {
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

 private:
  SuperclassAccuracyOptions options_;
  std::vector<CountBin> bins_;
};

}  // namespace

config::Keys SuperclassAccuracyOptions::keys() {
  return {config::key("superclass_accuracy", &SuperclassAccuracyOptions::superclass_accuracy, false,
                      "Measures top1_superclass, whether the class with the largest score has the label's superclass, "
                      "such as the genus of a species; and macro_top1_superclass (mean over classes), "
                      "few_top1_superclass, medium_top1_superclass and many_top1_superclass. The data set needs "
                      "superclasses, its own or of data.superclasses.")};
}

std::unique_ptr<Metric> make_superclass_accuracy(SuperclassAccuracyOptions options, std::vector<CountBin> bins) {
  return std::make_unique<SuperclassAccuracy>(options, std::move(bins));
}

MetricEntry superclass_accuracy_entry() {
  return {.name = "superclass",
          .help =
              "Superclass accuracy: share of samples whose largest score is of a class in their label's superclass, "
              "its mean over classes and shot groups.",
          .keys = SuperclassAccuracyOptions::keys(),
          .make = [](const config::Config& config) {
            return make_superclass_accuracy(config.read<SuperclassAccuracyOptions>("eval"),
                                            CountBinOptions::bins_of(config));
          }};
}

}  // namespace settrain
