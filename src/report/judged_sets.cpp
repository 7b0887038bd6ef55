#include "src/report/judged_sets.h"

#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <stdexcept>

#include "metrics/threshold.h"

namespace settrain {
namespace {

// The place of the K that the metrics of `select` are of, else of the largest.
template <class K, class Name>
size_t chosen(const std::vector<K>& ks, const config::Texts& select, Name name_of) {
  for (const std::string& metric : select) {
    for (size_t i = 0; i < ks.size(); ++i) {
      const std::string name = name_of(ks[i]);
      if (metric.ends_with("/" + name) || metric.ends_with("_" + name)) return i;
    }
  }
  return static_cast<size_t>(std::max_element(ks.begin(), ks.end()) - ks.begin());
}

at::Tensor largest_scores(const at::Tensor& scores, int64_t k) {
  const at::Tensor order = std::get<1>(at::sort(scores, /*stable=*/true, /*dim=*/1, /*descending=*/true));
  const at::Tensor in_set = at::zeros(scores.sizes(), scores.options().dtype(at::kBool));
  return in_set.scatter(1, order.narrow(1, 0, std::min(k, scores.size(1))), true);
}

}  // namespace

JudgedSets judged_sets(const AnswerOptions& rule, const SplitScores& split, const MetricContext& context) {
  JudgedSets sets;
  sets.is_sigmoid = !rule.average_k.average_k.empty() && rule.average_k.average_k_score == "sigmoid";
  const at::Tensor logits = split.scores.mul(context.score_scale);
  sets.probabilities = sets.is_sigmoid ? at::sigmoid(logits) : at::softmax(logits, 1);
  if (!rule.average_k.average_k.empty()) {
    const size_t place = chosen(rule.average_k.average_k, rule.select, average_k_name);
    const AverageKValues compared = average_k_values(rule.average_k, split, context);
    sets.name = average_k_name(rule.average_k.average_k[place]);
    sets.threshold = compared.lambdas[place];
    sets.in_set = returned_classes(compared.values, compared.lambdas[place], compared.ties);
    return sets;
  }
  if (rule.top_k.top_k.empty()) throw std::invalid_argument("judged_sets: neither average-K nor top-K");
  const int64_t k = rule.top_k.top_k[chosen(rule.top_k.top_k, rule.select, topk_name)];
  sets.name = topk_name(k);
  sets.in_set = largest_scores(split.scores, k);
  return sets;
}

}  // namespace settrain
