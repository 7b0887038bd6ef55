#include "src/eval/results_table.h"

#include <cmath>
#include <limits>

#include "tests/support/catch2.h"

namespace settrain {
namespace {

const double kNone = std::nan("");

MetricValue sized(const std::string& name, double value, const std::string& size, MeanOver over = MeanOver::kSamples) {
  return {.name = name, .value = value, .over = over, .size = size};
}

MetricValue size_of_sets(const std::string& name, double value) {
  return {name, value, MetricUnit::kClasses};
}

TEST_CASE("the table puts metrics in rows and splits in columns") {
  const std::vector<ResultsColumn> columns{
      {"val",
       {{"top1", 0.9123},
        {"macro_top1", 1},
        sized("avg2", 0.5, "avg2_size"),
        size_of_sets("avg2_size", 2),
        {"avg2_lambda", 0.1, MetricUnit::kThreshold}}},
      {"test",
       {{"top1", 0.0905},
        {"macro_top1", 0.25},
        sized("avg2", 0.75, "avg2_size"),
        size_of_sets("avg2_size", 1.975),
        {"avg2_lambda", 0.1, MetricUnit::kThreshold}}},
      {"test Bayes", {{"top1", 0.93}, sized("avg2", 0.99, "avg2_size"), size_of_sets("avg2_size", 2)}}};
  CHECK(format_results(columns) ==
        "accuracy, %     val                test              test Bayes\n"
        "top1          91.23                9.05               93.00\n"
        "macro_top1   100.00               25.00                   -\n"
        "avg2          50.00 (size 2.00)   75.00 (size 1.98)   99.00 (size 2.00)\n");
}

TEST_CASE("beside the coverage of a set rule stands the size of its sets") {
  const std::vector<ResultsColumn> columns{{"test",
                                            {sized("coverage@top:2", 0.9, "size@top:2"), size_of_sets("size@top:2", 2),
                                             sized("macro_coverage@top:2", 0.75, "size@top:2", MeanOver::kClasses)}}};
  CHECK(format_results(columns) ==
        "accuracy, %             test\n"
        "coverage@top:2         90.00 (size 2.00)\n"
        "macro_coverage@top:2   75.00\n");
}

TEST_CASE("shot groups have rows where classes are in more than one") {
  const std::vector<ResultsColumn> one_group{
      {"val", {{"top1", 1}, {"few_top1", kNone}, {"medium_top1", kNone}, {"many_top1", 1}}}};
  CHECK(format_results(one_group).find("many_top1") == std::string::npos);
  const std::vector<ResultsColumn> two_groups{
      {"val", {{"top1", 1}, {"few_top1", kNone}, {"medium_top1", 0.5}, {"many_top1", 1}}}};
  CHECK(format_results(two_groups).find("many_top1") != std::string::npos);
  CHECK(format_results(two_groups).find("medium_top1") != std::string::npos);
  CHECK(format_results(two_groups).find("few_top1") == std::string::npos);
}

TEST_CASE("a set size histogram has a bar a size between the smallest and the largest") {
  CHECK(format_set_sizes({"avg2", {0, 400, 0, 5, 0}}) ==
        "avg2: images by the number of classes in their set\n"
        "        1       400 ########################################\n"
        "        2         0\n"
        "        3         5 #\n");
}

TEST_CASE("many set sizes share twelve lines at most, and no image is lost") {
  for (const size_t sizes : {12, 13, 24, 25, 1000}) {
    std::vector<int64_t> counts(sizes + 1, 1);
    counts[0] = 0;
    const std::string text = format_set_sizes({"avg9", counts});
    const auto lines = std::count(text.begin(), text.end(), '\n') - 1;
    CAPTURE(sizes, text);
    CHECK(lines <= 12);
    CHECK(lines >= 6);
    CHECK(std::count(text.begin(), text.end(), '#') > 0);
    CHECK(text.find(std::to_string(sizes)) != std::string::npos);
  }
}

}  // namespace
}  // namespace settrain
