// Top-K accuracy: is the label among the K largest scores?
#include "metrics/entries.h"
#include "metrics/label_rank.h"

namespace settrain {
namespace {

/// For every K: the share of samples whose label is among the K largest scores (Garcin 2023, eq. 2.14), its mean over
/// classes, over the shot groups and over `bins` (class_hits.h). Ties go to the smaller class index; K >= classes holds
/// every label.
class TopkAccuracy : public Metric {
 public:
  TopkAccuracy(TopkAccuracyOptions options, std::vector<CountBin> bins)
      : options_(std::move(options)), bins_(std::move(bins)) {}

  std::vector<MetricValue> facts() const override {
    std::vector<MetricValue> facts;
    for (const int64_t k : options_.top_k) append(facts, accuracy_facts(topk_name(k), bins_));
    return facts;
  }

  ResultsOfSamples prepare(const SplitScores& split, const MetricContext& context) const override {
    return [this, all_ranks = label_ranks(split.scores, split.labels), all_labels = split.labels,
            classes = split.scores.size(1), train_counts = context.train_counts](const at::Tensor& samples) {
      const at::Tensor ranks = of_samples(all_ranks, samples), labels = of_samples(all_labels, samples);
      EvaluationResult result;
      for (const int64_t k : options_.top_k) {
        const ClassHits counts = count_hits(ranks.lt(k), labels, classes);
        append(result.values, accuracies(topk_name(k), counts, train_counts, bins_));
      }
      return result;
    };
  }

 private:
  TopkAccuracyOptions options_;
  std::vector<CountBin> bins_;
};

}  // namespace

std::string topk_name(int64_t k) {
  return "top" + std::to_string(k);
}

config::Keys TopkAccuracyOptions::keys() {
  return {
      config::key(
          "top_k", &TopkAccuracyOptions::top_k, {1, 5},
          "The K of the top-K accuracies: top5, macro_top5 (mean over classes), few_top5, medium_top5 and many_top5 "
          "(classes with under 20, 20 to 100, over 100 training images). The default leaves out K above the number of "
          "classes.")
          .at_least(1)
          .distinct()};
}

std::unique_ptr<Metric> make_topk_accuracy(TopkAccuracyOptions options, std::vector<CountBin> bins) {
  return std::make_unique<TopkAccuracy>(std::move(options), std::move(bins));
}

MetricEntry topk_accuracy_entry() {
  return {
      .name = "top_k",
      .help =
          "Top-K accuracy: share of samples whose label is among the K largest scores (Garcin 2023, eq. 2.14), its mean "
          "over classes (section 3.3.1) and over few-, medium- and many-shot classes.",
      // The bins' bounds hold for all metrics; they stand beside the first one's K.
      .keys = config::joined(TopkAccuracyOptions::keys(), CountBinOptions::keys()),
      .make = [](const config::Config& config) {
        return make_topk_accuracy(config.read<TopkAccuracyOptions>("eval"), CountBinOptions::bins_of(config));
      }};
}

}  // namespace settrain
