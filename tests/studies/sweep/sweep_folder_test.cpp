#include "src/studies/sweep/sweep_folder.h"

#include <cmath>
#include <fstream>

#include "src/run_folder/run_folder.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;

PointResult result_of(const std::string& results_json, const std::string& metrics_jsonl = "") {
  const test::TemporaryFolder folder;
  const RunFolder run = RunFolder::create(folder / "run", false);
  std::ofstream(run.config()) << "seed: 1\n";
  std::ofstream(run.results_json()) << results_json;
  std::ofstream(run.metrics_jsonl()) << metrics_jsonl;
  return read_result(run.path(), "val/top5");
}

TEST_CASE("a run's result is of the checkpoint that the metric chose") {
  const PointResult result = result_of(R"([{"checkpoint": "best-val-top1", "epoch": 2, "metrics": {}},
      {"checkpoint": "best-val-top5", "epoch": 3, "metrics": {"val": {"top5": 0.5}, "test": {"few_top5": null}},
       "set_sizes": {"test": {"avg5": [0, 3]}}}])");
  CHECK(result.checkpoint == "best-val-top5");
  CHECK(result.epoch == 3);
  CHECK(result.metric("val/top5") == 0.5);
  CHECK(std::isnan(result.metric("test/few_top5")));
  REQUIRE(result.set_sizes.size() == 1);
  CHECK(result.set_sizes[0].first == "test/avg5");
  CHECK(result.set_sizes[0].second == std::vector<int64_t>{0, 3});
}

TEST_CASE("without a best checkpoint the last one stands for a run of no epochs alone") {
  const PointResult result = result_of(R"([{"checkpoint": "last", "epoch": 0, "metrics": {"val": {"top5": 0.25}}}])");
  CHECK(result.checkpoint == "last");
  CHECK(result.metric("val/top5") == 0.25);
  CHECK_THROWS_WITH(result_of(R"([{"checkpoint": "last", "epoch": 2, "metrics": {}}])"),
                    Contains("has no results of best-val-top5"));
}

TEST_CASE("a metric that never had a value chose nothing, and the last checkpoint stands") {
  const std::string last = R"([{"checkpoint": "best-val-top1", "epoch": 1, "metrics": {}},
      {"checkpoint": "last", "epoch": 2, "metrics": {"val": {"top5": null}}}])";
  const std::string undefined =
      "{\"step\": 3, \"epoch\": 1, \"val/top5\": null}\n{\"step\": 6, \"epoch\": 2, \"val/top5\": null}\n";
  const PointResult result = result_of(last, undefined);
  CHECK(result.checkpoint == "last");
  CHECK(result.epoch == 2);
  CHECK(result.chose_nothing);
  CHECK_THAT(chose_nothing_text("val/top5", result), Contains("val/top5"));
  // Another metric may have chosen the only checkpoint that was evaluated.
  CHECK(result_of(R"([{"checkpoint": "best-val-top1", "epoch": 1, "metrics": {}}])", undefined).checkpoint ==
        "best-val-top1");
  CHECK_THROWS_WITH(result_of("[]", undefined), Contains("best-val-top5"));

  // A value in one epoch chose a checkpoint, and a metric that was not measured cannot.
  CHECK_THROWS_WITH(result_of(last, undefined + "{\"step\": 9, \"epoch\": 3, \"val/top5\": 0.5}\n"),
                    Contains("best-val-top5"));
  CHECK_THROWS_WITH(result_of(last, "{\"step\": 3, \"epoch\": 1, \"val/top1\": null}\n"), Contains("best-val-top5"));
}

TEST_CASE("runs that were trained on the same images and tested on others are reported") {
  const auto result = [](const std::string& train, const std::string& test) {
    return result_of(R"([{"checkpoint": "best-val-top5", "epoch": 1, "metrics": {}, "digests": {"train": ")" + train +
                     R"(", "test": ")" + test + "\"}}]");
  };
  ImageComparison images;
  images.add("a", result("x", "y"));
  images.add("b", result("x", "y"));
  images.add("other data", result("z", "w"));
  images.add("early version", result_of(R"([{"checkpoint": "best-val-top5", "epoch": 1, "metrics": {}}])"));
  CHECK(images.remarks().empty());
  images.add("c", result("x", "repaired"));
  images.add("d", result("x", "repaired"));
  REQUIRE(images.remarks().size() == 1);
  CHECK_THAT(images.remarks()[0], Contains("a and c") && Contains("test images"));
}

}  // namespace
}  // namespace settrain
