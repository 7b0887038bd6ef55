#include "metrics/sets/temperature.h"

#include <ATen/ops/softmax.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

namespace settrain {
namespace {

constexpr int kHalvings = 60;  // of the logarithm's range, 13.8: down to the last bits

// The derivative of the mean log-likelihood with respect to 1/T: mean of s_y - E[s] under softmax(s / T).
double slope(const at::Tensor& scores, const at::Tensor& label_scores, double inverse) {
  const at::Tensor expected = at::softmax(scores.mul(inverse), 1).mul_(scores).sum(1);
  return label_scores.sub(expected).mean().item<double>();
}

}  // namespace

double fit_temperature(const at::Tensor& given, const at::Tensor& labels) {
  const at::Tensor scores = given.to(at::kCPU, at::kDouble);
  const at::Tensor label_scores = scores.gather(1, labels.cpu().unsqueeze(1)).squeeze(1);
  double low = std::log(kLeastTemperature), high = std::log(kLargestTemperature);
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (slope(scores, label_scores, std::exp(middle)) < 0 ? high : low) = middle;
  }
  return std::exp(-(low + high) / 2);
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
