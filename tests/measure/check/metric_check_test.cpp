#include <ATen/ATen.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "src/core/error.h"
#include "src/measure/check/checks.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Json = nlohmann::json;

/// The rows of the golden file with `edit` applied.
template <class Edit>
std::vector<CheckRow> check_edited_metrics(Edit edit) {
  const test::TemporaryFolder folder;
  Json json = Json::parse(std::ifstream(test::golden_path("metrics.json")));
  edit(json);
  std::ofstream(folder / "metrics.json") << json;
  return check_metrics(at::kCPU, {folder / "metrics.json"});
}

TEST_CASE("metrics match the golden values in float64") {
  const std::vector<CheckRow> rows = check_metrics(at::kCPU, {test::golden_path("metrics.json")});
  CHECK(rows.size() == 8 * 8);  // cases, kinds
  for (const CheckRow& row : rows) {
    CAPTURE(row.name, row.what, row.max_error, row.note);
    CHECK(row.passed);
  }
}

TEST_CASE("metrics match the golden counts in float32") {
  const auto rows = check_metrics(at::kCPU, {test::golden_path("metrics.json")}, at::kFloat);
  CHECK(rows.size() == 8 * 8);
  for (const CheckRow& row : rows) {
    CAPTURE(row.name, row.what, row.max_error, row.note);
    // A threshold is a float32 midpoint here; everything else follows from counts.
    CHECK(row.max_error <= (row.what == "average-K threshold" ? 1e-7 : row.tolerance));
  }
}

TEST_CASE("a differing value fails its row alone and is named") {
  const auto rows = check_edited_metrics([](Json& json) {
    json["cases"][0]["expected"]["average_k"]["2"]["lambda"] = 0.5;
    json["cases"][1]["expected"]["shot_class_counts"]["few"] = 1;
    json["cases"][7]["expected"]["shot_topk_accuracy"]["3"]["few"] = 0.5;
  });
  std::vector<std::string> failed;
  for (const CheckRow& row : rows) {
    if (!row.passed) failed.push_back(row.name + ": " + row.what);
    if (row.what == "average-K threshold" && !row.passed) CHECK_THAT(row.note, Catch::Contains("avg2_lambda"));
  }
  CHECK(failed == std::vector<std::string>{"long_tail_l12: average-K threshold",
                                           "long_tail_l20: classes in the test labels",
                                           "no_few_shot_class_l6: top-K accuracy over classes"});
}

TEST_CASE("a malformed golden file is refused with the place") {
  const auto message_of = [](auto edit) {
    try {
      check_edited_metrics(edit);
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
             Catch::Contains("/cases/1/test/probabilities/3") && Catch::Contains("20"));
  CHECK_THAT(message_of([](Json& json) { json["cases"][0]["train_counts"][0] = "many"; }),
             Catch::Contains("/cases/0/train_counts/0"));
  CHECK_THAT(message_of([](Json& json) { json["cases"][0]["average_k_values"][0] = 0; }),
             Catch::Contains("/cases/0/average_k_values/0"));
  CHECK_THROWS_AS(check_metrics(at::kCPU, {"/nowhere/metrics.json"}), DataError);
}

}  // namespace
}  // namespace settrain
