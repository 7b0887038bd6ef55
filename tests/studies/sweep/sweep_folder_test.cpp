#include "src/studies/sweep/sweep_folder.h"

#include <cmath>
#include <fstream>

#include "src/run_folder/run_folder.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;

PointResult result_of(const std::string& results_json) {
  const test::TemporaryFolder folder;
  const RunFolder run = RunFolder::create(folder / "run", false);
  std::ofstream(run.config()) << "seed: 1\n";
  std::ofstream(run.results_json()) << results_json;
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

}  // namespace
}  // namespace settrain
