#include "src/measure/check/metric_check.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "metrics/entries.h"
#include "src/core/error.h"
#include "src/eval/evaluator.h"
#include "src/measure/check/metric_golden.h"
#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"

namespace settrain {
namespace {

using Json = nlohmann::json;

/// The golden file with `edit` applied, in a folder of its own that goes with the object.
class EditedGolden {
 public:
  template <class Edit>
  explicit EditedGolden(Edit edit)
      : folder_(std::filesystem::temp_directory_path() / ("settrain_metric_check_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    Json json = Json::parse(std::ifstream(test::golden_path("metrics.json")));
    edit(json);
    std::ofstream(file()) << json;
  }
  EditedGolden(const EditedGolden&) = delete;
  ~EditedGolden() { std::filesystem::remove_all(folder_); }

  std::filesystem::path file() const { return folder_ / "metrics.json"; }

 private:
  std::filesystem::path folder_;
};

TEST_CASE("metrics match the golden values in float64") {
  const std::vector<CheckRow> rows = check_metrics(at::kCPU, {test::golden_path("metrics.json")});
  CHECK(rows.size() == 8 * 8);  // cases, kinds
  for (const CheckRow& row : rows) {
    CAPTURE(row.name, row.what, row.max_error, row.note);
    CHECK(row.passed);
  }
}

TEST_CASE("metrics match the golden counts in float32") {
  for (const MetricGolden& golden : read_metric_golden(test::golden_path("metrics.json"))) {
    std::vector<std::unique_ptr<Metric>> metrics;
    metrics.push_back(make_topk_accuracy({golden.top_k}));
    metrics.push_back(make_average_k({golden.average_k, "raw", "keep_all", "val"}));
    MetricContext context;
    context.train_counts = golden.train_counts;
    const Evaluator evaluator(std::move(metrics), context);
    const SplitScores val{golden.val.scores.to(at::kFloat), golden.val.labels};
    const SplitScores test{golden.test.scores.to(at::kFloat), golden.test.labels};
    const EvaluationResult val_result = evaluator.evaluate(val), test_result = evaluator.evaluate(test, &val.scores);
    CAPTURE(golden.name);
    for (const ExpectedValues& expected : golden.expected) {
      // A threshold is a float32 midpoint here; everything else follows from counts.
      const double margin = expected.what == "average-K threshold" ? 1e-7 : 1e-12;
      for (const auto& [name, value] : expected.val) {
        CHECK(test::value_of(val_result, name) == Approx(value).margin(margin).epsilon(0));
      }
      for (const auto& [name, value] : expected.test) {
        CAPTURE(name);
        if (std::isnan(value)) {
          CHECK(std::isnan(test::value_of(test_result, name)));
        } else {
          CHECK(test::value_of(test_result, name) == Approx(value).margin(margin).epsilon(0));
        }
      }
    }
    for (const SetSizeHistogram& expected : golden.test_set_sizes) {
      const auto is_wanted = [&](const SetSizeHistogram& sizes) { return sizes.metric == expected.metric; };
      const auto got = std::find_if(test_result.set_sizes.begin(), test_result.set_sizes.end(), is_wanted);
      REQUIRE(got != test_result.set_sizes.end());
      CHECK(got->counts == expected.counts);
    }
  }
}

TEST_CASE("a differing value fails its row alone and is named") {
  const EditedGolden golden([](Json& json) {
    json["cases"][0]["expected"]["average_k"]["2"]["lambda"] = 0.5;
    json["cases"][1]["expected"]["shot_class_counts"]["few"] = 1;
    json["cases"][7]["expected"]["shot_topk_accuracy"]["3"]["few"] = 0.5;
  });
  std::vector<std::string> failed;
  for (const CheckRow& row : check_metrics(at::kCPU, {golden.file()})) {
    if (!row.passed) failed.push_back(row.name + ": " + row.what);
    if (row.what == "average-K threshold" && !row.passed) CHECK_THAT(row.note, Catch::Contains("avg2_lambda"));
  }
  CHECK(failed == std::vector<std::string>{"long_tail_l12: average-K threshold",
                                           "long_tail_l20: classes in the test labels",
                                           "no_few_shot_class_l6: top-K accuracy over classes"});
}

TEST_CASE("a malformed golden file is refused with the place") {
  const auto message_of = [](auto edit) {
    const EditedGolden golden(edit);
    try {
      check_metrics(at::kCPU, {golden.file()});
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(message_of([](Json& json) { json = Json::array(); }),
             Catch::Contains("metrics.json") && Catch::Contains("cases"));
  CHECK_THAT(message_of([](Json& json) { json["cases"][2]["val"].erase("labels"); }), Catch::Contains("/cases/2/val"));
  CHECK_THAT(message_of([](Json& json) { json["cases"][1]["test"]["labels"][4] = 20; }),
             Catch::Contains("/cases/1/test/labels/4") && Catch::Contains("19"));
  CHECK_THAT(message_of([](Json& json) { json["cases"][1]["test"]["probabilities"][3].erase(0); }),
             Catch::Contains("/cases/1/test/probabilities/3") && Catch::Contains("a list of 20"));
  CHECK_THAT(message_of([](Json& json) { json["cases"][0]["train_counts"][0] = "many"; }),
             Catch::Contains("/cases/0/train_counts/0"));
  CHECK_THAT(message_of([](Json& json) { json["cases"][0]["average_k_values"][0] = 0; }),
             Catch::Contains("/cases/0/average_k_values/0"));
  CHECK_THROWS_AS(check_metrics(at::kCPU, {"/nowhere/metrics.json"}), DataError);
}

}  // namespace
}  // namespace settrain
