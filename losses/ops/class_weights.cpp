#include "losses/ops/class_weights.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace settrain {
namespace {

// 1/amounts, scaled to a mean of 1 over the classes with an amount.
std::vector<double> inverse(const std::vector<double>& amounts) {
  std::vector<double> weights;
  double sum = 0, present = 0;
  for (const double amount : amounts) {
    weights.push_back(amount > 0 ? 1 / amount : 0);
    sum += weights.back();
    present += amount > 0;
  }
  for (double& weight : weights) weight *= present / sum;
  return weights;
}

}  // namespace

config::Keys ClassWeightOptions::keys() {
  using config::key;
  using Options = ClassWeightOptions;
  return {
      key("class_weights", &Options::kind, kNone,
          "Weights of the classes in the loss, by their training images, label noise included: none; inverse_frequency; effective_number "
          "(Cui et al., CVPR 2019); or list, as loss.class_weight_list has them. The first two are scaled to a mean "
          "of 1.",
          {{"none", kNone},
           {"inverse_frequency", kInverseFrequency},
           {"effective_number", kEffectiveNumber},
           {"list", kList}}),
      key("class_weight_beta", &Options::beta, 0.9999,
          "Beta of the effective number (1 - beta^n)/(1 - beta) of n images; 0 counts every class the same, towards "
          "1 it is the inverse frequency. Default: Cao et al., NeurIPS 2019.")
          .at_least(0)
          .below(1),
      key("class_weight_list", &Options::list, config::Reals{},
          "With class_weights: list, one weight per class, not rescaled.")
          .at_least(0),
      key("class_weights_from_epoch", &Options::from_epoch, 0,
          "Deferred re-weighting: the first so many epochs have no class weights (Cao et al.: 160 of 200). Less than "
          "train.epochs.")
          .at_least(0)
          .in("epochs"),
      key("class_weight_mean", &Options::mean, kMeanOverSamples,
          "What the sum of a step's weighted losses is divided by: samples, their number; or weights, the sum of their "
          "weights, as PyTorch's cross_entropy and the code of Cao et al. do. On long-tailed data the mean weight of a "
          "sample is far below 1, so the first takes smaller steps.",
          {{"samples", kMeanOverSamples}, {"weights", kMeanOverWeights}})};
}

std::vector<double> inverse_frequency_weights(const std::vector<int64_t>& counts) {
  return inverse(std::vector<double>(counts.begin(), counts.end()));
}

std::vector<double> effective_number_weights(const std::vector<int64_t>& counts, double beta) {
  std::vector<double> effective;
  // 1 - beta^n without cancellation.
  for (const int64_t n : counts) effective.push_back(n > 0 ? -std::expm1(static_cast<double>(n) * std::log(beta)) : 0);
  return inverse(effective);
}

std::optional<ClassWeights> ClassWeights::read(const config::Config& config, const std::vector<int64_t>& counts) {
  const auto options = config.read<ClassWeightOptions>("loss");
  if (options.kind == ClassWeightOptions::kNone) return std::nullopt;
  if (options.kind == ClassWeightOptions::kInverseFrequency)
    return ClassWeights(inverse_frequency_weights(counts), options);
  if (options.kind == ClassWeightOptions::kEffectiveNumber) {
    return ClassWeights(effective_number_weights(counts, options.beta), options);
  }
  if (options.list.size() != counts.size()) {
    config.fail(options.list.empty() ? "loss.class_weights" : "loss.class_weight_list",
                fmt::format("expected {} weights in loss.class_weight_list, one a class, got {}", counts.size(),
                            options.list.size()));
  }
  if (std::all_of(options.list.begin(), options.list.end(), [](double weight) { return weight == 0; })) {
    config.fail("loss.class_weight_list", "all weights are 0: nothing would be learnt");
  }
  return ClassWeights(options.list, options);
}

ClassWeights::ClassWeights(std::vector<double> weights, const ClassWeightOptions& options)
    : weights_(std::move(weights)),
      weight_of_(weights_),
      from_epoch_(options.from_epoch),
      mean_over_weights_(options.mean == ClassWeightOptions::kMeanOverWeights) {}

at::Tensor ClassWeights::apply(const at::Tensor& losses, const at::Tensor& labels, int64_t epoch) const {
  return epoch < from_epoch_ ? losses : losses * weight_of_.of(labels, losses);
}

at::Tensor ClassWeights::apply_to_all(const at::Tensor& losses, int64_t epoch) const {
  return epoch < from_epoch_ ? losses : losses * weight_of_.of_all(losses);
}

double ClassWeights::total(const at::Tensor& labels, int64_t epoch) const {
  if (epoch < from_epoch_ || !mean_over_weights_) return static_cast<double>(labels.size(0));
  const at::Tensor contiguous = labels.cpu().contiguous();
  const auto* label = contiguous.const_data_ptr<int64_t>();
  return std::accumulate(label, label + labels.size(0), 0.0,
                         [&](double sum, int64_t j) { return sum + weights_.at(static_cast<size_t>(j)); });
}

}  // namespace settrain
