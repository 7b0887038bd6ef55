#include "src/papers/table/filled_table.h"

#include <fmt/format.h>

#include "tests/papers/figure/figure_files.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Catch::Contains;
using Catch::EndsWith;
using Paths = std::vector<std::filesystem::path>;

const std::string kTwoLosses = R"yaml(
paper: A paper
title: Two losses
base: ../base.yaml
seeds: [1, 2]
against: A
rows:
  name: epsilon
  each:
    - {label: "0.1", set: {loss.epsilon: 0.1}}
    - {label: "1", set: {loss.epsilon: 1.0}}
columns:
  name: Loss
  each:
    - {label: A, set: {loss.name: a}}
    - {label: B, set: {loss.name: b}}
parts:
  - number: "1"
    title: Average-2
    metric: test/few_avg2
    select: val/top1
    printed: {"0.1": ["50", "60.0"], "1": ["-", "70"]}
)yaml";

struct Runs : test::FigureFiles {
  Table table = read_table(write("tables/1.yaml", kTwoLosses), "paper");
  Paths folders{};

  void add(const std::string& loss, double epsilon, int seed, const std::string& metrics) {
    const std::string name = fmt::format("{}-{}-{}", loss, epsilon, seed);
    folders.push_back(
        run(name, fmt::format("seed: {}\nloss: {{name: {}, epsilon: {}}}\n", seed, loss, epsilon),
            fmt::format(R"([{{"checkpoint": "best-val-top1", "epoch": 1, "metrics": {{"test": {{{}}}}}}}])", metrics)));
  }

  FilledTable collect(bool of_table_only) const {
    return collect_runs(table, test::figure_schema(), folders, of_table_only);
  }
};

}  // namespace

TEST_CASE("a cell has its runs' values, their sets' size, and the difference by seed to another column") {
  Runs runs;
  runs.add("a", 0.1, 1, R"("few_avg2": 0.5, "avg2_size": 2.5)");
  runs.add("a", 0.1, 2, R"("few_avg2": 0.6, "avg2_size": 1.5)");
  runs.add("b", 0.1, 2, R"("few_avg2": 0.7)");
  const FilledTable filled = runs.collect(true);
  CHECK(filled.found == 3);
  CHECK(filled.wanted == 6);  // nothing is trained for the cell that the paper leaves empty
  CHECK(filled.remarks.empty());
  REQUIRE(filled.parts.size() == 1);
  const TableCell& a = filled.parts[0].cells[0][0];
  const TableCell& b = filled.parts[0].cells[0][1];
  CHECK(a.metric == "test/few_avg2");
  CHECK(a.seeds == std::vector<int64_t>{1, 2});
  CHECK(a.values == std::vector<double>{0.5, 0.6});
  CHECK(a.ours->mean == Approx(0.55));
  CHECK(a.size->mean == Approx(2));
  CHECK_FALSE(a.against.has_value());
  CHECK(*b.printed_value == Approx(0.6));
  CHECK_FALSE(b.size.has_value());
  REQUIRE(b.against.has_value());
  CHECK(b.against->mean == Approx(0.1));
  CHECK(b.against->count == 1);
  CHECK(filled.parts[0].cells[1][0].metric.empty());
  CHECK_FALSE(filled.parts[0].cells[1][1].ours.has_value());
}

TEST_CASE("seeds that the table does not name count where any is welcome") {
  Runs runs;
  runs.add("a", 0.1, 9, R"("few_avg2": 0.5)");
  CHECK(runs.collect(true).found == 0);
  CHECK(runs.collect(false).parts[0].cells[0][0].seeds == std::vector<int64_t>{9});
}

TEST_CASE("runs that are not in the table are remarks") {
  Runs runs;
  runs.add("a", 7, 1, R"("few_avg2": 0.5)");
  runs.add("b", 0.1, 1, R"("top1": 0.5)");
  runs.add("b", 0.1, 2, R"("few_avg2")");
  const FilledTable filled = runs.collect(true);
  REQUIRE(filled.remarks.size() == 3);
  CHECK_THAT(filled.remarks[0], Contains("b-0.1-2/results.json"));
  CHECK_THAT(filled.remarks[1],
             EndsWith("a-7-1: its config is that of no cell; nearest: loss.epsilon: 7.0 in the run, 0.1 in the cell"));
  CHECK_THAT(filled.remarks[2], Contains("b-0.1-1: has no test/few_avg2"));
  CHECK(filled.parts[0].cells[0][1].values.empty());
}

}  // namespace settrain
