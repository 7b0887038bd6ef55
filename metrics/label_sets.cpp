#include "metrics/label_sets.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sort.h>

#include <algorithm>

#include "losses/ops/sparse_top_projection.h"
#include "metrics/split_scores.h"

namespace settrain {
namespace {

double mean_of(const at::Tensor& values) {
  return values.to(at::kDouble).mean().item<double>();
}

/// 2 hits / (returned + wanted), element by element.
at::Tensor f1_of(const at::Tensor& hits, const at::Tensor& returned, const at::Tensor& wanted) {
  return hits.to(at::kDouble).mul(2).div(returned.add(wanted));
}

void add_topk(std::vector<MetricValue>& values, const at::Tensor& scores, const at::Tensor& label_sets,
              const at::Tensor& wanted, const config::Integers& top_k) {
  if (top_k.empty()) return;
  const int64_t most = std::min(*std::ranges::max_element(top_k), scores.size(1));
  const at::Tensor order = std::get<1>(at::sort(scores, /*stable=*/true, /*dim=*/1, /*descending=*/true));
  const at::Tensor hits = label_sets.gather(1, order.narrow(1, 0, most)).cumsum(1, at::kDouble);
  for (const int64_t k : top_k) {
    values.push_back({topk_name(k) + "_recall", mean_of(hits.select(1, std::min(k, most) - 1).div(wanted))});
  }
}

void add_average_k(std::vector<MetricValue>& values, const at::Tensor& scores, const at::Tensor& label_sets,
                   const at::Tensor& wanted, const AverageKOptions& options, const MetricContext& context) {
  if (options.average_k.empty()) return;
  const AverageKValues decided = average_k_values(options, {scores, {}}, context);
  const at::Tensor wanted_of_class = label_sets.sum(0);
  for (size_t i = 0; i < decided.lambdas.size(); ++i) {
    const std::string name = average_k_name(options.average_k[i]);
    const at::Tensor returned = returned_classes(decided.values, decided.lambdas[i], decided.ties);
    const at::Tensor found = returned.logical_and(label_sets), sizes = returned.sum(1), hits = found.sum(1);
    const MetricValue size = average_k_size(options.average_k[i], mean_of(sizes));
    const at::Tensor of_classes = f1_of(found.sum(0), returned.sum(0), wanted_of_class);
    const auto add = [&](const char* what, double value, MeanOver over = MeanOver::kSamples) {
      values.push_back({.name = name + what, .value = value, .over = over, .size = size.name});
    };
    add("_recall", mean_of(hits.div(wanted)));
    add("_f1", mean_of(f1_of(hits, sizes, wanted)));
    add("_micro_f1", f1_of(hits.sum(), sizes.sum(), wanted.sum()).item<double>());
    add("_macro_f1", mean_of(of_classes.masked_select(wanted_of_class.gt(0))), MeanOver::kClasses);
    values.push_back(size);
    values.push_back(
        {name + "_lambda", decided.lambdas[i], MetricUnit::kThreshold, MeanOver::kSamples, Better::kNeither});
  }
}

void add_sparse_top(std::vector<MetricValue>& values, const at::Tensor& scores, const at::Tensor& label_sets,
                    const at::Tensor& wanted) {
  // By blocks: the projection takes memory for several matrices of float64.
  constexpr int64_t kRows = 4096;
  const at::Tensor weight = at::empty(wanted.sizes(), wanted.options()), sizes = at::empty_like(weight);
  const at::Tensor hits = at::empty_like(weight);
  for (int64_t first = 0; first < scores.size(0); first += kRows) {
    const int64_t rows = std::min(kRows, scores.size(0) - first);
    const at::Tensor labels = label_sets.narrow(0, first, rows);
    const at::Tensor q = sparse_top_projection(scores.narrow(0, first, rows).to(at::kDouble),
                                               wanted.narrow(0, first, rows).to(at::kLong));
    const at::Tensor returned = q.gt(0);
    weight.narrow(0, first, rows).copy_(q.mul(labels).sum(1));
    sizes.narrow(0, first, rows).copy_(returned.sum(1));
    hits.narrow(0, first, rows).copy_(returned.logical_and(labels).sum(1));
  }
  const std::string size = "sparse_top_size";
  values.push_back({.name = "sparse_top_weight", .value = mean_of(weight.div(wanted)), .size = size});
  values.push_back({.name = "sparse_top_f1", .value = mean_of(f1_of(hits, sizes, wanted)), .size = size});
  values.push_back({size, mean_of(sizes), MetricUnit::kClasses, MeanOver::kSamples, Better::kNeither});
}

}  // namespace

std::vector<MetricValue> label_set_accuracies(const at::Tensor& scores, const at::Tensor& label_sets,
                                              const config::Integers& top_k, const AverageKOptions& average_k,
                                              const MetricContext& context) {
  check_label_matrix(scores, label_sets);
  const at::Tensor wanted = label_sets.sum(1).to(at::kDouble);
  std::vector<MetricValue> values;
  add_topk(values, scores, label_sets, wanted, top_k);
  add_average_k(values, scores, label_sets, wanted, average_k, context);
  add_sparse_top(values, scores, label_sets, wanted);
  return values;
}

}  // namespace settrain
