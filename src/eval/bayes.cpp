#include "src/eval/bayes.h"

#include <ATen/ops/topk.h>

#include <algorithm>
#include <cmath>

#include "metrics/average_k.h"
#include "metrics/checks.h"
#include "metrics/topk_accuracy.h"

namespace settrain {
namespace {

/// The `count` largest of `values` [n], summed; a fraction of a value where count is not whole.
double sum_of_largest(const at::Tensor& values, double count) {
  const auto whole = static_cast<int64_t>(std::floor(count));
  const auto taken = static_cast<int64_t>(std::ceil(count));
  const at::Tensor largest = std::get<0>(at::topk(values, taken));
  const double sum = largest.narrow(0, 0, whole).sum(at::kDouble).item<double>();
  return taken == whole ? sum : sum + (count - static_cast<double>(whole)) * largest[whole].item<double>();
}

}  // namespace

std::vector<MetricValue> bayes_accuracy(const at::Tensor& probabilities, const config::Integers& top_k,
                                        const config::Reals& average_k) {
  check_scores("known probabilities", probabilities);
  const int64_t samples = probabilities.size(0), classes = probabilities.size(1);
  std::vector<MetricValue> values;
  for (const int64_t k : top_k) {
    const at::Tensor largest = std::get<0>(at::topk(probabilities, std::min(k, classes), 1));
    values.push_back({topk_name(k), largest.sum(at::kDouble).item<double>() / static_cast<double>(samples)});
  }
  for (const double k : average_k) {
    const double size = std::min(k, static_cast<double>(classes));
    const double sum = sum_of_largest(probabilities.flatten(), size * static_cast<double>(samples));
    values.push_back({average_k_name(k), sum / static_cast<double>(samples)});
    values.push_back({average_k_name(k) + "_size", size});
  }
  return values;
}

}  // namespace settrain
