// Accuracy on some images of a split: a few superclasses, or a few images of each class.
#include <ATen/ops/full.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "metrics/entries.h"
#include "src/core/metric_name.h"
#include "src/core/random.h"

namespace settrain {
namespace {

/// The accuracies of Garcin 2023, section 3.3.3 and figure 3.7: the network knows all classes, and only the images are
/// fewer. Top-K and average-K accuracy, as "subset_top5", "subset_macro_top5", "subset_avg5", "subset_macro_avg5",
/// "subset_avg5_size" and "subset_avg5_lambda". Average-K's threshold is always set on these images themselves,
/// wherever other thresholds come from. The images are those of the superclasses, and of these at most so many of each
/// class, drawn by the seed from the class' samples in their order. Needs MetricContext::superclass_names where
/// superclasses are named. All values are NaN where the split has none of these images.
class SubsetAccuracy : public Metric {
 public:
  SubsetAccuracy(SubsetOptions options, TopkAccuracyOptions top_k, AverageKOptions average_k)
      : options_(std::move(options)) {
    if (!options_.is_wanted()) return;
    metrics_.push_back(make_topk_accuracy(std::move(top_k)));
    metrics_.push_back(make_average_k(std::move(average_k)));
  }

  std::vector<MetricValue> facts() const override {
    std::vector<MetricValue> facts;
    for (const auto& metric : metrics_) append(facts, renamed(metric->facts()));
    for (MetricValue& value : facts) value.value = std::numeric_limits<double>::quiet_NaN();
    return facts;
  }

  ResultsOfSamples prepare(const SplitScores& split, const MetricContext& context) const override {
    const std::vector<int64_t> chosen = samples_in(split, context);
    if (chosen.empty()) return [this](const at::Tensor&) { return EvaluationResult{facts(), {}}; };
    const SplitScores subset = samples_of(split, chosen);
    MetricContext own = context;
    own.threshold_scores = nullptr;
    std::vector<ResultsOfSamples> prepared;
    for (const auto& metric : metrics_) {
      if (!metric->facts().empty()) prepared.push_back(metric->prepare(subset, own));
    }
    at::Tensor place = at::full({split.labels.size(0)}, -1, at::kLong);
    for (size_t i = 0; i < chosen.size(); ++i) place[chosen[i]] = static_cast<int64_t>(i);
    place = place.to(split.labels.device());
    return [this, prepared = std::move(prepared), place](const at::Tensor& samples) {
      at::Tensor of_subset;
      if (samples.defined()) {
        of_subset = place.index_select(0, samples);
        of_subset = of_subset.masked_select(of_subset.ge(0));
        if (of_subset.size(0) == 0) return EvaluationResult{facts(), {}};
      }
      EvaluationResult result;
      for (const ResultsOfSamples& results : prepared) {
        EvaluationResult part = results(of_subset);
        append(result.values, renamed(std::move(part.values)));
        std::erase_if(part.set_sizes, [](const SetSizeHistogram& sizes) { return is_of_group(sizes.metric); });
        for (SetSizeHistogram& sizes : part.set_sizes) sizes.metric = kSubsetPrefix + sizes.metric;
        append(result.set_sizes, std::move(part.set_sizes));
      }
      return result;
    };
  }

 private:
  // Few images of few classes say nothing about a shot group.
  static bool is_of_group(const std::string& name) {
    return std::ranges::any_of(std::array{"few_", "medium_", "many_"},
                               [&](const char* group) { return name.starts_with(group); });
  }

  static std::vector<MetricValue> renamed(std::vector<MetricValue> values) {
    std::erase_if(values, [](const MetricValue& value) { return is_of_group(value.name); });
    for (MetricValue& value : values) {
      value.name = kSubsetPrefix + value.name;
      if (!value.size.empty()) value.size = kSubsetPrefix + value.size;
    }
    return values;
  }

  // The samples of the subset, in their order.
  std::vector<int64_t> samples_in(const SplitScores& split, const MetricContext& context) const {
    const std::set<std::string> names(options_.superclasses.begin(), options_.superclasses.end());
    const auto is_wanted = [&](size_t c) {
      return names.empty() ||
             names.contains(context.superclass_names.at(static_cast<size_t>(context.superclass_of.at(c))));
    };
    std::vector<std::vector<int64_t>> by_class(static_cast<size_t>(split.scores.size(1)));
    const at::Tensor labels = split.labels.cpu().contiguous();
    for (int64_t i = 0; i < labels.size(0); ++i) {
      by_class[static_cast<size_t>(labels.const_data_ptr<int64_t>()[i])].push_back(i);
    }
    std::vector<int64_t> chosen;
    for (size_t c = 0; c < by_class.size(); ++c) {
      if (!is_wanted(c)) continue;
      const int64_t images = std::ssize(by_class[c]);
      std::vector<int64_t> order(by_class[c].size());
      std::iota(order.begin(), order.end(), 0);
      if (options_.images_per_class != SubsetOptions::kAll && images > options_.images_per_class) {
        order = permutation(images, static_cast<uint64_t>(options_.seed), Stream::kSubset, /*step=*/1,
                            static_cast<uint32_t>(c));
        order.resize(static_cast<size_t>(options_.images_per_class));
      }
      for (const int64_t place : order) chosen.push_back(by_class[c][static_cast<size_t>(place)]);
    }
    std::ranges::sort(chosen);
    return chosen;
  }

  SubsetOptions options_;
  std::vector<std::unique_ptr<Metric>> metrics_{};  // empty where no subset is wanted
};

}  // namespace

config::Keys SubsetOptions::keys() {
  using config::key;
  using O = SubsetOptions;
  return {
      key("subset.superclasses", &O::superclasses, {},
          "Names of superclasses, such as genera: top-K and average-K accuracy are also measured on their images "
          "alone, as subset_top5, subset_avg5 and so on. Labels, classes and scores stay those of all classes; the "
          "threshold of average-K is set on these images themselves (Garcin 2023, figure 3.7). Empty: of all.")
          .distinct(),
      key("subset.images_per_class", &O::images_per_class, O::kAll,
          "Most images of a class among those of the subset_ metrics; a larger class' are drawn. With all and no "
          "eval.subset.superclasses there are no such metrics.")
          .at_least(1)
          .in("images")
          .word("all", O::kAll),
      key("subset.seed", &O::seed, int64_t{1234},
          "Seed that selects the images of eval.subset.images_per_class; separate from the run's seed, so that runs "
          "with different seeds are measured on the same images.")
          .at_least(0)};
}

std::unique_ptr<Metric> make_subset_accuracy(SubsetOptions options, TopkAccuracyOptions top_k,
                                             AverageKOptions average_k) {
  return std::make_unique<SubsetAccuracy>(std::move(options), std::move(top_k), std::move(average_k));
}

MetricEntry subset_accuracy_entry() {
  return {.name = "subset",
          .help =
              "Top-K and average-K accuracy on the images of some superclasses, or on a few images of each class "
              "(Garcin 2023, section 3.3.3); the classes stay all.",
          .keys = SubsetOptions::keys(),
          .make = [](const config::Config& config) {
            return make_subset_accuracy(config.read<SubsetOptions>("eval"), config.read<TopkAccuracyOptions>("eval"),
                                        config.read<AverageKOptions>("eval"));
          }};
}

}  // namespace settrain
