#include "metrics/label_sets.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "losses/ops/sparse_top_projection.h"
#include "metrics/split_scores.h"

namespace settrain {
namespace {

constexpr double kNoMean = std::numeric_limits<double>::quiet_NaN();

double mean_of(const at::Tensor& values) {
  return values.to(at::kDouble).mean().item<double>();
}

/// 2 hits / (returned + wanted), element by element.
at::Tensor f1_of(const at::Tensor& hits, const at::Tensor& returned, const at::Tensor& wanted) {
  return hits.to(at::kDouble).mul(2).div(returned.add(wanted));
}

/// Means over images; NaN before there are scores.
struct AverageKMeans {
  double recall = kNoMean, f1 = kNoMean, micro_f1 = kNoMean, macro_f1 = kNoMean, size = kNoMean, lambda = kNoMean;
};

struct SparseTopMeans {
  double weight = kNoMean, f1 = kNoMean, size = kNoMean;
};

MetricValue topk_recall(int64_t k, double recall) {
  return {topk_name(k) + "_recall", recall};
}

/// Without size and lambda, which are also those of average-K accuracy.
std::vector<MetricValue> average_k_values_of(double k, const AverageKMeans& means) {
  const std::string name = average_k_name(k), size = average_k_size(k, means.size).name;
  return {{.name = name + "_recall", .value = means.recall, .size = size},
          {.name = name + "_f1", .value = means.f1, .size = size},
          {.name = name + "_micro_f1", .value = means.micro_f1, .size = size},
          {.name = name + "_macro_f1", .value = means.macro_f1, .over = MeanOver::kClasses, .size = size}};
}

std::vector<MetricValue> sparse_top_values_of(const SparseTopMeans& means) {
  const std::string size = "sparse_top_size";
  return {{.name = "sparse_top_weight", .value = means.weight, .size = size},
          {.name = "sparse_top_f1", .value = means.f1, .size = size},
          {size, means.size, MetricUnit::kClasses, MeanOver::kSamples, Better::kNeither}};
}

/// The share of the labels that is among the K largest scores, [images] float64 for every K.
std::vector<at::Tensor> topk_recalls(const at::Tensor& scores, const at::Tensor& label_sets, const at::Tensor& wanted,
                                     const config::Integers& top_k) {
  std::vector<at::Tensor> recalls;
  if (top_k.empty()) return recalls;
  const int64_t most = std::min(*std::ranges::max_element(top_k), scores.size(1));
  const at::Tensor order = std::get<1>(at::sort(scores, /*stable=*/true, /*dim=*/1, /*descending=*/true));
  const at::Tensor hits = label_sets.gather(1, order.narrow(1, 0, most)).cumsum(1);
  for (const int64_t k : top_k) recalls.push_back(hits.select(1, std::min(k, most) - 1).div(wanted));
  return recalls;
}

AverageKMeans judge_average_k(const at::Tensor& returned, const at::Tensor& label_sets, double lambda) {
  const at::Tensor found = returned.logical_and(label_sets), sizes = returned.sum(1), hits = found.sum(1);
  const at::Tensor wanted = label_sets.sum(1).to(at::kDouble), wanted_of_class = label_sets.sum(0);
  const at::Tensor of_classes = f1_of(found.sum(0), returned.sum(0), wanted_of_class);
  return {.recall = mean_of(hits.div(wanted)),
          .f1 = mean_of(f1_of(hits, sizes, wanted)),
          .micro_f1 = f1_of(hits.sum(), sizes.sum(), wanted.sum()).item<double>(),
          .macro_f1 = mean_of(of_classes.masked_select(wanted_of_class.gt(0))),
          .size = mean_of(sizes),
          .lambda = lambda};
}

/// How the answers that know the number of labels fare on each image, [images] float64.
struct SparseTop {
  at::Tensor weight, f1, size;

  SparseTopMeans means(const at::Tensor& samples) const {
    return {mean_of(of_samples(weight, samples)), mean_of(of_samples(f1, samples)), mean_of(of_samples(size, samples))};
  }
};

SparseTop sparse_top_of(const at::Tensor& scores, const at::Tensor& label_sets, const at::Tensor& wanted) {
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
  return {weight.div(wanted), f1_of(hits, sizes, wanted), sizes};
}

/// The accuracies of label_sets.h. In a split without label sets an image's label is a set of one.
class LabelSetAccuracy : public Metric {
 public:
  /// `with_sizes`: also gives avg5_size and avg5_lambda, which average-K accuracy has too.
  LabelSetAccuracy(LabelSetOptions options, TopkAccuracyOptions top_k, AverageKOptions average_k, bool with_sizes)
      : options_(options), top_k_(std::move(top_k.top_k)), average_k_(std::move(average_k)), with_sizes_(with_sizes) {}

  std::vector<MetricValue> facts() const override {
    std::vector<MetricValue> facts;
    if (!options_.label_sets) return facts;
    for (const int64_t k : top_k_) facts.push_back(topk_recall(k, kNoMean));
    for (const double k : average_k_.average_k) add_average_k(k, {}, facts);
    append(facts, sparse_top_values_of({}));
    return facts;
  }

  ResultsOfSamples prepare(const SplitScores& split, const MetricContext& context) const override {
    const at::Tensor all_sets = split.label_sets.defined() ? split.label_sets : sets_of_one(split);
    const at::Tensor wanted = all_sets.sum(1).to(at::kDouble);
    const std::vector<at::Tensor> recalls = topk_recalls(split.scores, all_sets, wanted, top_k_);
    AverageKValues decided;
    if (!average_k_.average_k.empty()) decided = average_k_values(average_k_, split, context);
    const bool own_thresholds = context.threshold_scores == nullptr;
    const SparseTop sparse_top = sparse_top_of(split.scores.mul(context.score_scale), all_sets, wanted);

    return [=, this](const at::Tensor& samples) {
      EvaluationResult result;
      for (size_t i = 0; i < top_k_.size(); ++i)
        result.values.push_back(topk_recall(top_k_[i], mean_of(of_samples(recalls[i], samples))));
      if (!average_k_.average_k.empty()) {
        const at::Tensor values = of_samples(decided.values, samples), label_sets = of_samples(all_sets, samples);
        const std::vector<double> lambdas = samples.defined() && own_thresholds
                                                ? decided.thresholds_for(values, average_k_.average_k)
                                                : decided.lambdas;
        for (size_t i = 0; i < lambdas.size(); ++i) {
          const at::Tensor returned = returned_classes(values, lambdas[i], decided.ties);
          add_average_k(average_k_.average_k[i], judge_average_k(returned, label_sets, decided.shown(lambdas[i])),
                        result.values);
        }
      }
      append(result.values, sparse_top_values_of(sparse_top.means(samples)));
      return result;
    };
  }

 private:
  void add_average_k(double k, const AverageKMeans& means, std::vector<MetricValue>& values) const {
    append(values, average_k_values_of(k, means));
    if (with_sizes_) append(values, {average_k_size(k, means.size), average_k_lambda(k, means.lambda)});
  }

  static at::Tensor sets_of_one(const SplitScores& split) {
    return at::zeros(split.scores.sizes(), split.scores.options().dtype(at::kBool))
        .scatter_(1, split.labels.unsqueeze(1), true);
  }

  LabelSetOptions options_;
  config::Integers top_k_;
  AverageKOptions average_k_;
  bool with_sizes_;
};

}  // namespace

std::vector<MetricValue> label_set_accuracies(const at::Tensor& scores, const at::Tensor& label_sets,
                                              const config::Integers& top_k, const AverageKOptions& average_k,
                                              const MetricContext& context) {
  check_scores("scores", scores);
  check_label_sets(label_sets, scores);
  const LabelSetAccuracy metric({.label_sets = true}, {.top_k = top_k}, average_k, /*with_sizes=*/true);
  return metric.compute({scores, {}, label_sets}, context).values;
}

config::Keys LabelSetOptions::keys() {
  return {config::key(
      "label_sets", &LabelSetOptions::label_sets, false,
      "Judges images by all of their labels too: top5_recall (the share of the labels among the 5 largest scores), "
      "avg5_recall, avg5_f1, avg5_micro_f1 and avg5_macro_f1 (of average-K's sets), and sparse_top_weight, "
      "sparse_top_f1 and sparse_top_size (where the number of labels is known). The data set needs images with several "
      "labels.")};
}

std::unique_ptr<Metric> make_label_sets(LabelSetOptions options, TopkAccuracyOptions top_k, AverageKOptions average_k) {
  return std::make_unique<LabelSetAccuracy>(options, std::move(top_k), std::move(average_k), /*with_sizes=*/false);
}

MetricEntry label_sets_entry() {
  return {
      .name = "label_sets",
      .help =
          "Accuracies by all labels of an image that has several: top-K recall, recall and F1 of average-K sets, the "
          "sparse-top answer for a known number of labels (Garcin 2023, section 6.2.7).",
      .keys = LabelSetOptions::keys(),
      .make = [](const config::Config& config) {
        return make_label_sets(config.read<LabelSetOptions>("eval"), config.read<TopkAccuracyOptions>("eval"),
                               config.read<AverageKOptions>("eval"));
      }};
}

}  // namespace settrain
