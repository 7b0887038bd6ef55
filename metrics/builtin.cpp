#include "metrics/average_k.h"
#include "metrics/count_bins.h"
#include "metrics/metric.h"
#include "metrics/superclass_accuracy.h"
#include "metrics/topk_accuracy.h"

namespace settrain {
namespace {

std::vector<CountBin> bins_of(const config::Config& config) {
  return config.read<CountBinOptions>("eval").bins();
}

// The bins' bounds hold for all metrics; they stand beside the first one's K.
config::Keys topk_keys() {
  config::Keys keys = TopkAccuracyOptions::keys();
  for (config::Key& key : CountBinOptions::keys()) keys.push_back(std::move(key));
  return keys;
}

std::unique_ptr<Metric> make_topk_accuracy(const config::Config& config) {
  return std::make_unique<TopkAccuracy>(config.read<TopkAccuracyOptions>("eval"), bins_of(config));
}

std::unique_ptr<Metric> make_average_k(const config::Config& config) {
  return std::make_unique<AverageK>(config.read<AverageKOptions>("eval"), bins_of(config));
}

std::unique_ptr<Metric> make_superclass_accuracy(const config::Config& config) {
  return std::make_unique<SuperclassAccuracy>(config.read<SuperclassAccuracyOptions>("eval"), bins_of(config));
}

}  // namespace

void register_builtin_metrics(MetricRegistry& registry) {
  registry.add(
      {"top_k",
       "Top-K accuracy: share of samples whose label is among the K largest scores (Garcin 2023, eq. 2.14), its mean "
       "over classes (section 3.3.1) and over few-, medium- and many-shot classes.",
       topk_keys(), make_topk_accuracy});
  registry.add(
      {"average_k",
       "Average-K accuracy: share of samples whose label is in sets of K classes on average, cut at one threshold for "
       "all samples (Garcin 2023, Algorithm 1, eq. 5.16-5.17); realised set size, mean over classes and shot groups.",
       AverageKOptions::keys(), make_average_k});
  registry.add({"superclass",
                "Superclass accuracy: share of samples whose largest score is of a class in their label's superclass, "
                "its mean over classes and shot groups.",
                SuperclassAccuracyOptions::keys(), make_superclass_accuracy});
}

}  // namespace settrain
