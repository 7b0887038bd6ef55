#include "metrics/average_k.h"
#include "metrics/metric.h"
#include "metrics/topk_accuracy.h"

namespace settrain {
namespace {

/// A metric's values are named after its K, so a K must not come twice.
template <class T>
void refuse_repeats(const config::Config& config, const char* path, const std::vector<T>& ks, std::string (*name)(T)) {
  for (size_t i = 0; i < ks.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (ks[i] == ks[j]) config.fail(path, name(ks[i]) + " is asked for twice; list every K once");
    }
  }
}

std::unique_ptr<Metric> make_topk_accuracy(const config::Config& config) {
  auto options = config.read<TopkAccuracyOptions>("eval");
  refuse_repeats(config, "eval.top_k", options.top_k, &topk_name);
  return std::make_unique<TopkAccuracy>(std::move(options));
}

std::unique_ptr<Metric> make_average_k(const config::Config& config) {
  auto options = config.read<AverageKOptions>("eval");
  refuse_repeats(config, "eval.average_k", options.average_k, &average_k_name);
  return std::make_unique<AverageK>(std::move(options));
}

}  // namespace

void register_builtin_metrics(MetricRegistry& registry) {
  registry.add(
      {"top_k",
       "Top-K accuracy: share of samples whose label is among the K largest scores (Garcin 2023, eq. 2.14), its mean "
       "over classes (section 3.3.1) and over few-, medium- and many-shot classes.",
       TopkAccuracyOptions::keys(), make_topk_accuracy});
  registry.add(
      {"average_k",
       "Average-K accuracy: share of samples whose label is in sets of K classes on average, cut at one threshold for "
       "all samples (Garcin 2023, Algorithm 1, eq. 5.16-5.17); realised set size, mean over classes and shot groups.",
       AverageKOptions::keys(), make_average_k});
}

}  // namespace settrain
