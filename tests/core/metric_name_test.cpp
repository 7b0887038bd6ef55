#include "src/core/metric_name.h"

#include "tests/support/catch2.h"

namespace settrain {

TEST_CASE("an average-K accuracy has the size of its sets beside it, and nothing else has") {
  CHECK(size_metric("test/avg5") == "test/avg5_size");
  CHECK(size_metric("val/few_avg1.5") == "val/avg1.5_size");
  CHECK(size_metric("test/subset_macro_avg5") == "test/subset_avg5_size");
  CHECK(size_metric("test/avg5_size").empty());
  CHECK(size_metric("test/avg5_lambda").empty());
  CHECK(size_metric("test/top5").empty());
}

TEST_CASE("a metric by all labels has the size of the sets that it judges beside it") {
  for (const char* what : {"recall", "f1", "micro_f1", "macro_f1"}) {
    CHECK(judged_by_all_labels(std::string("val/avg2.5_") + what) == "val/avg2.5");
    CHECK(size_metric(std::string("val/avg2.5_") + what) == "val/avg2.5_size");
  }
  CHECK(size_metric("test/sparse_top_weight") == "test/sparse_top_size");
  CHECK(size_metric("test/sparse_top_f1") == "test/sparse_top_size");
  CHECK(size_metric("test/sparse_top_size").empty());
  CHECK(accuracy_metric("test/sparse_top_size") == "test/sparse_top_weight");
  CHECK(judged_by_all_labels("test/top5_recall") == "test/top5");
  CHECK(size_metric("test/top5_recall").empty());
  CHECK(judged_by_all_labels("test/macro_avg5") == "test/macro_avg5");
}

TEST_CASE("a size and a threshold belong to an accuracy") {
  CHECK(accuracy_metric("test/avg5_size") == "test/avg5");
  CHECK(accuracy_metric("test/avg5_lambda") == "test/avg5");
  CHECK(accuracy_metric("test/macro_avg5") == "test/macro_avg5");
}

TEST_CASE("the coverage of a set rule has the size of its sets beside it") {
  CHECK(size_metric("test/coverage@conformal:lac:0.1") == "test/size@conformal:lac:0.1");
  CHECK(size_metric("test/macro_coverage@top:5") == "test/size@top:5");
  CHECK(size_metric("coverage@average:5") == "size@average:5");
  CHECK(size_metric("test/size@top:5").empty());
  CHECK(size_metric("test/undercoverage_gap@conformal:lac:0.1").empty());
  CHECK(accuracy_metric("test/size@top:5") == "test/coverage@top:5");
  CHECK(accuracy_metric("test/below_half@top:5") == "test/below_half@top:5");
}

TEST_CASE("a metric's split ends at the first slash, unless that is one of a rule's file") {
  const std::string rule = "coverage@conformal:wpas(weights=data/weights.csv):0.1";
  CHECK(name_of_metric("val/" + rule) == rule);
  CHECK(split_of_metric("val/" + rule) == "val");
  CHECK(name_of_metric(rule) == rule);
  CHECK(split_of_metric(rule).empty());
  CHECK(size_metric("test/" + rule) == "test/size@conformal:wpas(weights=data/weights.csv):0.1");
  CHECK(name_of_metric("test Bayes/top1") == "top1");
  CHECK(split_of_metric("test Bayes/top1") == "test Bayes");
}

TEST_CASE("sizes are numbers of classes") {
  CHECK(is_size("test/avg5_size"));
  CHECK(is_size("avg5_size"));
  CHECK(is_size("test/size@top:5"));
  CHECK_FALSE(is_size("test/coverage@top:5"));
  CHECK_FALSE(is_size("test/top5"));
  CHECK(is_of_all_samples("avg1"));
  CHECK_FALSE(is_of_all_samples("medium_avg1"));
}

TEST_CASE("larger is better, but for the sizes and gaps of set rules") {
  CHECK(is_better_by_name("val/top1", 0.6, 0.5));
  CHECK_FALSE(is_better_by_name("val/top1", 0.5, 0.5));
  CHECK(is_better_by_name("val/coverage@top:5", 0.6, 0.5));
  for (const char* metric : {"val/size@top:5", "val/undercoverage_gap@error:0.1", "val/below_half@top:5"}) {
    CHECK(is_better_by_name(metric, 0.5, 0.6));
    CHECK_FALSE(is_better_by_name(metric, 0.6, 0.5));
  }
}

}  // namespace settrain
