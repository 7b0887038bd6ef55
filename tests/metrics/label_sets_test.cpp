#include "metrics/label_sets.h"

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <set>

#include "losses/ops/sparse_top_projection.h"
#include "src/core/error.h"
#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Catch::Contains;

AverageKOptions average_of(std::vector<double> ks, AverageKScore score = AverageKScore::kRaw) {
  return {
      .average_k = std::move(ks), .average_k_score = score, .average_k_ties = Ties::kKeepAll, .threshold_from = "same"};
}

std::map<std::string, double> by_name(const std::vector<MetricValue>& values) {
  std::map<std::string, double> result;
  for (const MetricValue& value : values) result[value.name] = value.value;
  return result;
}

TEST_CASE("label sets by hand") {
  const at::Tensor scores = at::tensor({3.0, 2.0, 1.0, 0.0, 0.0, 9.0, 8.0, 1.0}, at::kDouble).view({2, 4});
  const at::Tensor sets = at::tensor({1, 0, 1, 0, 0, 1, 0, 0}).view({2, 4}).to(at::kBool);
  // With K = 1.5 the sets are {0} and {1, 2}.
  const auto values = by_name(label_set_accuracies(scores, sets, {1, 2, 9}, average_of({1.5}), {}));
  CHECK(values.at("top1_recall") == Approx((0.5 + 1) / 2));
  CHECK(values.at("top2_recall") == Approx((0.5 + 1) / 2));
  CHECK(values.at("top9_recall") == 1);
  CHECK(values.at("avg1.5_lambda") == Approx(2.5));
  CHECK(values.at("avg1.5_size") == 1.5);
  CHECK(values.at("avg1.5_recall") == Approx((0.5 + 1) / 2));
  CHECK(values.at("avg1.5_f1") == Approx((2.0 / 3 + 2.0 / 3) / 2));
  CHECK(values.at("avg1.5_micro_f1") == Approx(2.0 * 2 / (3 + 3)));
  CHECK(values.at("avg1.5_macro_f1") == Approx((1.0 + 1 + 0) / 3));  // of the classes 0, 1 and 2
  // The projections, of two labels and of one: {1, 1, 0, 0} and {0, 1, 0, 0}.
  CHECK(values.at("sparse_top_weight") == Approx((0.5 + 1) / 2));
  CHECK(values.at("sparse_top_f1") == Approx((0.5 + 1) / 2));
  CHECK(values.at("sparse_top_size") == 1.5);
}

TEST_CASE("label sets of random scores, image by image") {
  at::manual_seed(5);
  const int64_t images = 30, classes = 8;
  const at::Tensor scores = at::randn({images, classes}, at::kDouble);
  const at::Tensor sets =
      at::rand({images, classes})
          .gt(0.7)
          .logical_or(at::eye(classes).index_select(0, at::arange(images).remainder(classes)).gt(0));
  const auto values = by_name(label_set_accuracies(scores, sets, {3}, average_of({2}), {}));
  const double lambda = average_k_thresholds(scores, std::vector<double>{2}, Ties::kKeepAll)[0];
  const at::Tensor q = sparse_top_projection(scores, sets.sum(1));
  double top3 = 0, recall = 0, f1 = 0, weight = 0, sparse_f1 = 0;
  for (int64_t i = 0; i < images; ++i) {
    std::multiset<double, std::greater<>> sorted;
    for (int64_t j = 0; j < classes; ++j) sorted.insert(scores[i][j].item<double>());
    double wanted = 0, in_top3 = 0, returned = 0, hits = 0, label_weight = 0, sparse = 0, sparse_hits = 0;
    for (int64_t j = 0; j < classes; ++j) {
      const double score = scores[i][j].item<double>(), share = q[i][j].item<double>();
      const bool is_label = sets[i][j].item<bool>();
      wanted += is_label;
      in_top3 += is_label && score >= *std::next(sorted.begin(), 2);
      returned += score >= lambda;
      hits += is_label && score >= lambda;
      label_weight += is_label ? share : 0;
      sparse += share > 0;
      sparse_hits += is_label && share > 0;
    }
    top3 += in_top3 / wanted / images;
    recall += hits / wanted / images;
    f1 += 2 * hits / (returned + wanted) / images;
    weight += label_weight / wanted / images;
    sparse_f1 += 2 * sparse_hits / (sparse + wanted) / images;
  }
  CHECK(values.at("top3_recall") == Approx(top3));
  CHECK(values.at("avg2_recall") == Approx(recall));
  CHECK(values.at("avg2_f1") == Approx(f1));
  CHECK(values.at("sparse_top_weight") == Approx(weight));
  CHECK(values.at("sparse_top_f1") == Approx(sparse_f1));
}

TEST_CASE("with one label an image, recall is accuracy") {
  at::manual_seed(6);
  const at::Tensor scores = at::randn({40, 7}), labels = at::randint(7, {40}, at::kLong);
  const at::Tensor sets = at::zeros({40, 7}, at::kBool).scatter(1, labels.unsqueeze(1), true);
  const AverageKOptions average_k = average_of({1.5}, AverageKScore::kSoftmax);
  const MetricContext context{.train_counts = std::vector<int64_t>(7, 50)};
  const auto of_sets = by_name(label_set_accuracies(scores, sets, {2}, average_k, context));
  CHECK(of_sets.at("top2_recall") ==
        Approx(by_name(make_topk_accuracy({.top_k = {2}})->compute({scores, labels}, context).values).at("top2")));
  const auto single = by_name(make_average_k(average_k)->compute({scores, labels}, context).values);
  CHECK(of_sets.at("avg1.5_recall") == Approx(single.at("avg1.5")));
  CHECK(of_sets.at("avg1.5_size") == single.at("avg1.5_size"));
  CHECK(of_sets.at("avg1.5_lambda") == single.at("avg1.5_lambda"));
}

TEST_CASE("of equal scores the lower class is among the largest") {
  const at::Tensor sets = at::tensor({0, 1, 0}).view({1, 3}).to(at::kBool);
  const auto values = by_name(label_set_accuracies(at::zeros({1, 3}), sets, {1, 2}, average_of({}), {}));
  CHECK(values.at("top1_recall") == 0);
  CHECK(values.at("top2_recall") == 1);
  CHECK(values.at("sparse_top_weight") == Approx(1.0 / 3));
}

TEST_CASE("thresholds may come from other images") {
  const at::Tensor scores = at::tensor({3.0, 2.0, 1.0}, at::kDouble).view({1, 3}), other = scores + 10;
  MetricContext context;
  context.threshold_scores = &other;
  const auto values = by_name(label_set_accuracies(scores, scores.gt(1.5), {}, average_of({1}), context));
  CHECK(values.at("avg1_lambda") == Approx(12.5));
  CHECK(values.at("avg1_recall") == 0);
  CHECK(values.at("avg1_f1") == 0);
}

// Random scores, and sets of a label and of each other class with probability 0.3.
SplitScores random_sets(uint64_t seed, int64_t images, int64_t classes) {
  SplitScores split = test::random_split(seed, images, classes, at::kFloat);
  split.label_sets = at::rand({images, classes}).lt(0.3).scatter(1, split.labels.unsqueeze(1), true);
  return split;
}

std::unique_ptr<Metric> metric_of(const AverageKOptions& average_k) {
  return make_label_sets({.label_sets = true}, {.top_k = {1, 3}}, average_k);
}

TEST_CASE("as a metric they are the same, without what average-K accuracy has already") {
  const SplitScores split = random_sets(11, 40, 9);
  const AverageKOptions average_k = average_of({1.5, 3}, AverageKScore::kSigmoid);
  const auto metric = metric_of(average_k);
  const EvaluationResult result = metric->compute(split, {});
  CHECK(test::facts_of(result.values) == test::facts_of(metric->facts()));
  auto expected = by_name(label_set_accuracies(split.scores, split.label_sets, {1, 3}, average_k, {}));
  for (const char* known : {"avg1.5_size", "avg1.5_lambda", "avg3_size", "avg3_lambda"})
    CHECK(expected.erase(known) == 1);
  CHECK(by_name(result.values) == expected);
  CHECK(make_label_sets({.label_sets = false}, {.top_k = {1}}, average_k)->facts().empty());
}

TEST_CASE("of samples that are drawn they are those of the drawn samples' scores") {
  const SplitScores split = random_sets(12, 30, 7);
  const at::Tensor thresholds = test::random_split(13, 50, 7, at::kFloat).scores;
  const std::vector<int64_t> drawn{3, 3, 0, 29, 14, 8, 8, 8, 21};
  for (const at::Tensor* from : {static_cast<const at::Tensor*>(nullptr), &thresholds}) {
    const auto metric = metric_of(average_of({2}));
    MetricContext context;
    context.threshold_scores = from;
    const auto got = by_name(metric->prepare(split, context)(at::tensor(drawn, at::kLong)).values);
    const auto expected = by_name(metric->compute(samples_of(split, drawn), context).values);
    CHECK(got == expected);
    CHECK(got != by_name(metric->compute(split, context).values));
  }
}

TEST_CASE("in a split without label sets the label is a set of one") {
  SplitScores split = test::random_split(14, 25, 6, at::kFloat);
  const auto metric = metric_of(average_of({2}));
  const auto of_labels = by_name(metric->compute(split, {}).values);
  split.label_sets = at::zeros({25, 6}, at::kBool).scatter(1, split.labels.unsqueeze(1), true);
  CHECK(of_labels == by_name(metric->compute(split, {}).values));
}

TEST_CASE("the projection is of scaled scores") {
  const SplitScores split = random_sets(15, 20, 5);
  MetricContext context;
  context.score_scale = 30;
  const auto metric = metric_of(average_of({}));
  CHECK(by_name(metric->compute(split, context).values).at("sparse_top_weight") ==
        by_name(metric->compute({split.scores.mul(30), split.labels, split.label_sets}, {}).values)
            .at("sparse_top_weight"));
}

TEST_CASE("label sets that do not fit the scores are refused") {
  const at::Tensor scores = at::zeros({2, 3}), all = at::ones({2, 3}, at::kBool);
  const auto judge = [&](const at::Tensor& sets) {
    return label_set_accuracies(scores, sets, {1}, average_of({1}), {});
  };
  CHECK_NOTHROW(judge(all));
  CHECK_THROWS_WITH(judge(all.slice(1, 0, 2)), Contains("label_sets") && Contains("[2, 3]"));
  CHECK_THROWS_WITH(judge(all.to(at::kLong)), Contains("label_sets") && Contains("bool"));
  CHECK_THROWS_WITH(judge(at::tensor({1, 0, 0, 0, 0, 0}).view({2, 3}).to(at::kBool)), Contains("image 1"));
}

}  // namespace
}  // namespace settrain
