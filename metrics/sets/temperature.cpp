#include "metrics/sets/temperature.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "metrics/sets/conformal_scores.h"
#include "metrics/sets/conformal_thresholds.h"
#include "src/core/error.h"

namespace settrain {
namespace {

constexpr int kHalvings = 60;  // of the logarithm's range, 13.8: down to the last bits

// The scores of images, each minus the largest of its image: the same probabilities, and nothing overflows.
struct Likelihood {
  at::Tensor scores;        // [images, classes] float64, at most 0
  at::Tensor label_scores;  // [images]

  Likelihood(const at::Tensor& given, const at::Tensor& labels) {
    const at::Tensor doubles = given.to(at::kCPU, at::kDouble);
    scores = doubles - doubles.amax(1, /*keepdim=*/true);
    label_scores = scores.gather(1, labels.cpu().unsqueeze(1)).squeeze(1);
  }

  // The derivative of the mean log-likelihood with respect to 1/T: mean of s_y - E[s] under softmax(s / T).
  double slope(double temperature) const {
    const at::Tensor expected = at::softmax(scores.div(temperature), 1).mul_(scores).sum(1);
    return label_scores.sub(expected).mean().item<double>();
  }

  // Says why the likelihood has no maximum; empty where it has one at some T > 0.
  std::string without_maximum() const {
    const double spread = -scores.mean().item<double>();  // 0 where all scores of each image are equal
    if (spread == 0) return "all scores of each image are equal, so that every temperature is as likely";
    if (label_scores.eq(0).all().item<bool>()) {
      return "every label has the largest score of its image, so that a smaller temperature is always more likely";
    }
    // At T = infinity all classes are equally probable. The tolerance is for rounding.
    constexpr double kRounding = 1e-12;
    if (label_scores.mean().item<double>() + spread <= kRounding * spread) {
      return "the labels' scores are on average not above the mean of all scores, so that a larger temperature is "
             "always more likely";
    }
    return "";
  }
};

}  // namespace

at::Tensor at_temperature(const at::Tensor& scores, double temperature) {
  const double largest =
      scores.scalar_type() == at::kDouble ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  return at::where(scores.isinf(), scores, scores.div(temperature).clamp_(-largest, largest));
}

TemperatureFit fit_temperature(const at::Tensor& scores, const at::Tensor& labels) {
  const Likelihood likelihood(scores, labels);
  if (std::string reason = likelihood.without_maximum(); !reason.empty()) return {.refused = std::move(reason)};
  for (const auto& [edge, is_outside, side] :
       {std::tuple(kLeastTemperature, likelihood.slope(kLeastTemperature) >= 0, "below"),
        std::tuple(kLargestTemperature, likelihood.slope(kLargestTemperature) <= 0, "above")}) {
    if (is_outside) {
      return {.refused = fmt::format("the most likely temperature is {} {:g}, the end of the range that is searched; "
                                     "are the scores on the scale of logits?",
                                     side, edge)};
    }
  }
  double low = std::log(kLeastTemperature), high = std::log(kLargestTemperature);
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (likelihood.slope(std::exp(middle)) < 0 ? low : high) = middle;
  }
  return {.temperature = std::exp((low + high) / 2)};
}

double efficient_temperature(const SplitScores& threshold_images, const SplitScores& images, double alpha) {
  const int64_t needed = images_needed(alpha);
  if (threshold_images.labels.size(0) < needed) {
    throw ConfigError(fmt::format("confts:{:g} needs {} images for its threshold, and has {}: half of those set apart",
                                  alpha, needed, threshold_images.labels.size(0)));
  }
  CalibratedRule aps;
  aps.rule.kind = SetRule::Kind::kConformal;
  aps.rule.level = alpha;
  aps.rule.score = ConformalScore::kAps;
  aps.classes = images.scores.size(1);
  const auto scores_at = [&](const SplitScores& split, double temperature) {
    return label_scores(aps, at_temperature(split.scores, temperature).contiguous(), split.labels.contiguous());
  };
  const auto loss_at = [&](double log_temperature) {
    const double temperature = std::exp(log_temperature);
    const double tau = conformal_quantile(scores_at(threshold_images, temperature), alpha).high;
    double sum = 0;
    for (const DoubleDouble& score : scores_at(images, temperature)) sum += (tau - score.high) * (tau - score.high);
    return sum;
  };
  constexpr int kPoints = 40, kRefinements = 30;
  const double low = std::log(kLeastEfficient), step = (std::log(kLargestEfficient) - low) / (kPoints - 1);
  double best = low, least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kPoints; ++i) {
    const double loss = loss_at(low + i * step);
    if (!(loss < least)) continue;
    least = loss;
    best = low + i * step;
  }
  // Golden-section search, where the loss has one minimum between the neighbours.
  constexpr double kGolden = 0.6180339887498949;
  double left = std::max(low, best - step), right = std::min(std::log(kLargestEfficient), best + step);
  for (int i = 0; i < kRefinements; ++i) {
    const double inner = kGolden * (right - left), a = right - inner, b = left + inner;
    if (loss_at(a) < loss_at(b)) {
      right = b;
    } else {
      left = a;
    }
  }
  const double refined = (left + right) / 2;
  return std::exp(loss_at(refined) < least ? refined : best);
}

double expected_calibration_error(const at::Tensor& scores, const at::Tensor& labels, int64_t bins) {
  const auto [largest, answers] = at::softmax(scores.to(at::kCPU, at::kDouble), 1).max(1);
  const at::Tensor is_right = answers.eq(labels.cpu()).to(at::kDouble).contiguous(), confidence = largest.contiguous();
  std::vector<double> excess(static_cast<size_t>(bins), 0.0);  // of probability over right answers, summed
  const int64_t images = confidence.size(0);
  for (int64_t i = 0; i < images; ++i) {
    const double p = confidence.const_data_ptr<double>()[i];
    const auto bin = static_cast<size_t>(std::min(static_cast<int64_t>(p * static_cast<double>(bins)), bins - 1));
    excess[bin] += p - is_right.const_data_ptr<double>()[i];
  }
  double total = 0;
  for (const double sum : excess) total += std::abs(sum);
  return total / static_cast<double>(images);
}

}  // namespace settrain
