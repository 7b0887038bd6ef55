#include <regex>

#include "src/studies/sweep/run_sweep.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Catch::Contains;

// Runs of epsilon 1 and 2, whose validation metric and sizes are given.
class Table {
 public:
  void add(const std::string& epsilon, const std::string& seed, double val, double test,
           PointStatus status = PointStatus::kFinished) {
    points_.push_back(
        {{{"loss.epsilon", epsilon}, {"loss.k", "5"}}, seed, "epsilon=" + epsilon + ",seed=" + seed, "", {}, 1});
    statuses_.push_back(status);
    results_.push_back({"best-val-avg5",
                        2,
                        {{"val/avg5", val},
                         {"val/avg5_size", 5.1},
                         {"test/avg5", test},
                         {"test/avg5_size", 4.9},
                         {"test/top1", 0.25}}});
  }

  std::vector<SweepRow> rows() const {
    std::vector<SweepRow> rows;
    for (size_t i = 0; i < points_.size(); ++i) {
      rows.push_back({&points_[i], statuses_[i]});
      if (statuses_[i] == PointStatus::kFinished) rows.back().result = results_[i];
      if (statuses_[i] == PointStatus::kFailed) rows.back().failure = "no | memory";
    }
    return rows;
  }

  // Without the blanks that pad its columns.
  std::string markdown() const {
    return std::regex_replace(sweep_markdown(grid, "title", rows()), std::regex(" +"), " ");
  }

  Grid grid{.base = "b.yaml", .select = "val/avg5", .report = {"test/avg5"}};

 private:
  std::vector<SweepPoint> points_;
  std::vector<PointStatus> statuses_;
  std::vector<PointResult> results_;
};

Table three_seeds() {
  Table table;
  table.add("1", "1", 0.5, 0.1);
  table.add("1", "2", 0.6, 0.2);
  table.add("1", "3", 0.7, 0.3);
  table.add("2", "1", 0.9, 0.6);
  table.add("2", "2", 0.4, 0.7);
  table.add("2", "3", 0.2, 0.8);
  return table;
}

}  // namespace

TEST_CASE("by the size of a rule's sets the smallest mean chooses") {
  Table table;
  table.grid.select = "val/size@conformal:lac:0.1";
  table.add("1", "1", 0.5, 0.1);
  table.add("2", "1", 0.5, 0.1);
  std::vector<SweepRow> rows = table.rows();
  rows[0].result->metrics.emplace_back(table.grid.select, 4.0);
  rows[1].result->metrics.emplace_back(table.grid.select, 3.0);
  const std::string text = sweep_markdown(table.grid, "title", rows);
  CHECK_THAT(text.substr(text.find("## Chosen by")), Contains("3.0000") && !Contains("4.0000"));
}

TEST_CASE("the mean on validation chooses, and the test stands beside the choice alone") {
  const std::string text = three_seeds().markdown();
  // Half-widths: 4.302652729911 standard errors.
  CHECK_THAT(text, Contains("| 1 | 60.00 ± 24.84 (3 seeds) | 5.1000 ± 0.0000 (3 seeds) |"));
  CHECK_THAT(text, Contains("| 2 | 50.00 ± 89.57 (3 seeds) |"));
  const size_t chosen = text.find("## Chosen by val/avg5");
  REQUIRE(chosen != std::string::npos);
  CHECK(text.find("test/") > chosen);
  CHECK_THAT(text.substr(chosen), Contains("| loss.epsilon | val/avg5 | val/avg5_size | test/avg5 | test/avg5_size |"));
  CHECK_THAT(text.substr(chosen), Contains("| 1 | 60.00") && Contains("20.00 ± 24.84 (3 seeds) | 4.9000"));
  CHECK_THAT(text.substr(chosen), !Contains("| 2 | 50.00"));
}

TEST_CASE("with `per` there is a choice for each value") {
  Table table = three_seeds();
  table.grid.per = {"loss.epsilon"};
  const std::string text = table.markdown();
  const std::string chosen = text.substr(text.find("## Chosen"));
  CHECK_THAT(chosen,
             Contains("| 1 | 60.00") && Contains("| 2 | 50.00") && Contains("One for each value of loss.epsilon"));
}

TEST_CASE("settings that are not whole are not chosen, and what is missing is said") {
  Table table;
  table.add("1", "1", 0.5, 0.1);
  table.add("1", "2", 0.6, 0.2);
  table.add("2", "1", 0.9, 0.6);
  table.add("2", "2", 0.9, 0.6, PointStatus::kFailed);
  table.add("3", "1", 0.9, 0.6, PointStatus::kStarted);
  const std::string text = table.markdown();
  const std::string chosen = text.substr(text.find("## Chosen"));
  CHECK_THAT(chosen, Contains("| 1 | 55.00") && !Contains("| 2 | 90.00"));
  CHECK_THAT(chosen, Contains("With two seeds"));
  CHECK_THAT(chosen, Contains("## Failed\n\n- epsilon=2,seed=2: no | memory\n"));
  CHECK_THAT(chosen, Contains("Still to come: 1 of 5 runs."));
}

TEST_CASE("the CSV has a row a run, with all that is known of it") {
  Table table;
  table.add("\"a,b\"", "1", 0.5, 1.0 / 3);
  table.add("2", "1", 0.5, 0.1, PointStatus::kPending);
  const std::string csv = sweep_csv(table.rows());
  CHECK(
      csv.substr(0, csv.find('\n')) ==
      "run,loss.epsilon,loss.k,seed,status,checkpoint,epoch,val/avg5,val/avg5_size,test/avg5,test/avg5_size,test/top1");
  CHECK_THAT(csv, Contains(",\"\"\"a,b\"\"\",5,1,finished,best-val-avg5,2,0.5,5.1,0.3333333333333333,4.9,0.25\n"));
  CHECK_THAT(csv, Contains(",2,5,1,pending,,,,,,,\n"));
}

}  // namespace settrain
