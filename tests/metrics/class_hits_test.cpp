#include "metrics/class_hits.h"

#include <ATen/ATen.h>

#include <cmath>

#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

TEST_CASE("hits are counted by the label's class") {
  const at::Tensor labels = at::tensor({0, 0, 0, 2, 2}, at::kLong);
  const ClassHits counts = count_hits(at::tensor({1, 0, 1, 1, 1}).to(at::kBool), labels, 4);
  CHECK(counts.hits == std::vector<int64_t>{2, 0, 2, 0});
  CHECK(counts.total == std::vector<int64_t>{3, 0, 2, 0});
}

TEST_CASE("the macro average leaves out classes without a sample") {
  const ClassHits counts{{1, 0, 3, 0}, {2, 0, 3, 4}};
  CHECK(accuracy(counts) == 4.0 / 9);
  CHECK(macro_accuracy(counts).mean == (0.5 + 1.0 + 0.0) / 3);
  CHECK(macro_accuracy(counts).classes == 3);
}

TEST_CASE("no hit at all is an accuracy of zero") {
  const ClassHits counts = count_hits(at::zeros({3}, at::kBool), at::tensor({1, 1, 0}, at::kLong), 2);
  CHECK(accuracy(counts) == 0);
  CHECK(macro_accuracy(counts).mean == 0);
}

TEST_CASE("shot groups end at 19, begin at 20, end at 100, begin at 101") {
  CHECK(shot_group(0) == ShotGroup::kFew);
  CHECK(shot_group(19) == ShotGroup::kFew);
  CHECK(shot_group(20) == ShotGroup::kMedium);
  CHECK(shot_group(100) == ShotGroup::kMedium);
  CHECK(shot_group(101) == ShotGroup::kMany);
}

TEST_CASE("a shot group averages the accuracies of its classes") {
  const ClassHits counts{{1, 1, 0, 2, 0}, {2, 4, 3, 2, 0}};
  const std::vector<int64_t> train_counts{19, 20, 100, 101, 5};
  CHECK(shot_accuracy(counts, train_counts, ShotGroup::kFew).mean == 0.5);
  CHECK(shot_accuracy(counts, train_counts, ShotGroup::kFew).classes == 1);  // class 4 has no sample
  CHECK(shot_accuracy(counts, train_counts, ShotGroup::kMedium).mean == 0.125);
  CHECK(shot_accuracy(counts, train_counts, ShotGroup::kMedium).classes == 2);
  CHECK(shot_accuracy(counts, train_counts, ShotGroup::kMany).mean == 1);
}

TEST_CASE("a shot group without a class has no accuracy") {
  const ClassHits counts{{1, 1}, {2, 1}};
  CHECK(std::isnan(shot_accuracy(counts, {500, 500}, ShotGroup::kFew).mean));
  CHECK(shot_accuracy(counts, {500, 500}, ShotGroup::kFew).classes == 0);
}

TEST_CASE("a bin without a class, or without a sample of its classes, has no accuracy") {
  const std::vector<CountBin> bins{{"bin0_9", 0, 9}, {"bin10_49", 10, 49}, {"bin50", 50, 1000}};
  const std::vector<MetricValue> values = accuracies("top1", ClassHits{{1, 0}, {2, 0}}, {60, 20}, bins);
  CHECK(std::isnan(values[5].value));
  CHECK(std::isnan(values[6].value));
  CHECK(values[7].value == 0.5);
}

TEST_CASE("accuracies carry their names") {
  const std::vector<CountBin> bins{{"bin0_49", 0, 49}, {"bin50", 50, 1000}};
  const std::vector<MetricValue> values = accuracies("top3", ClassHits{{1, 1, 0}, {1, 2, 1}}, {10, 50, 500}, bins);
  const std::vector<std::string> names{"top3",      "macro_top3",   "few_top3",  "medium_top3",
                                       "many_top3", "bin0_49_top3", "bin50_top3"};
  const std::vector<double> expected{0.5, 0.5, 1, 0.5, 0, 1, 0.25};
  CHECK(test::facts_of(accuracy_facts("top3", bins)) == test::facts_of(values));
  REQUIRE(values.size() == names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    CHECK(values[i].name == names[i]);
    CHECK(values[i].value == expected[i]);
  }
}

std::vector<std::string> names_of(const config::Integers& bounds) {
  std::vector<std::string> names;
  for (const CountBin& bin : CountBinOptions{bounds}.bins()) names.push_back(bin.name);
  return names;
}

TEST_CASE("bins are named after the counts that they hold") {
  CHECK(names_of({10, 50}) == std::vector<std::string>{"bin0_9", "bin10_49", "bin50"});
  CHECK(names_of({1}) == std::vector<std::string>{"bin0_0", "bin1"});
  CHECK(names_of({}).empty());
}

TEST_CASE("every number of training images is in one bin") {
  const std::vector<CountBin> bins = CountBinOptions{{10, 50, 500, 2000}}.bins();
  const auto bin_of = [&bins](int64_t train_count) {
    std::string held_by;
    for (const CountBin& bin : bins) {
      if (bin.holds(train_count)) held_by += bin.name + " ";
    }
    return held_by;
  };
  CHECK(bin_of(0) == "bin0_9 ");
  CHECK(bin_of(9) == "bin0_9 ");
  CHECK(bin_of(10) == "bin10_49 ");
  CHECK(bin_of(49) == "bin10_49 ");
  CHECK(bin_of(50) == "bin50_499 ");
  CHECK(bin_of(1999) == "bin500_1999 ");
  CHECK(bin_of(2000) == "bin2000 ");
  CHECK(bin_of(1000000) == "bin2000 ");
}

}  // namespace
}  // namespace settrain
