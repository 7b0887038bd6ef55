#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/papers/figure/paper_figure.h"
#include "tests/papers/figure/figure_files.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Catch::Contains;
using test::FigureFiles;
using test::kFigure;

std::string results(double top1, const std::string& set_sizes = "") {
  return fmt::format(
      R"([{{"checkpoint": "best-val-top1", "epoch": 2, "metrics": {{"test": {{"top1": {}}}}}}},
          {{"checkpoint": "best-val-top5", "epoch": 1, "metrics": {{}}, "set_sizes": {{"test": {{{}}}}}}}])",
      top1, set_sizes);
}

std::string config_text(const std::string& loss, double epsilon, int seed) {
  return fmt::format("seed: {}\nloss: {{name: {}, epsilon: {}}}\n", seed, loss, epsilon);
}

FilledFigure collect(const FigureFiles& files, const std::vector<std::filesystem::path>& runs,
                     bool of_figure_only = true) {
  const PaperFigure figure = read_figure(files.write_figure(kFigure), "paper");
  return collect_figure(figure, test::figure_schema(), runs, of_figure_only);
}

}  // namespace

TEST_CASE("a figure along its rows has means over seeds, with intervals from three on") {
  FigureFiles files;
  std::vector<std::filesystem::path> runs;
  for (int seed = 1; seed <= 3; ++seed) {
    runs.push_back(files.run(fmt::format("a{}", seed), config_text("a", 0.1, seed), results(0.5 + 0.1 * seed)));
  }
  for (int seed = 1; seed <= 2; ++seed) {
    runs.push_back(files.run(fmt::format("b{}", seed), config_text("b", 10, seed), results(0.25)));
  }
  const FilledFigure filled = collect(files, runs);
  CHECK(filled.found == 5);
  CHECK(filled.wanted == 18);
  REQUIRE(filled.charts.size() == 3);
  CHECK(filled.charts[0].name == "paper-1");
  CHECK(filled.charts[0].subtitle == "After A paper. Means over 2 to 3 seeds, 95 % intervals.");
  const ChartPanel& panel = filled.charts[0].panels[0];
  REQUIRE(panel.series.size() == 2);
  REQUIRE(panel.series[0].points.size() == 1);
  const ChartPoint& point = panel.series[0].points[0];
  CHECK(point.x == 0.1);
  CHECK(point.y == Approx(30));  // errors of 40, 30 and 20 %
  // Student's t of two degrees of freedom at 97.5 %, times 10 / sqrt(3).
  CHECK(*point.above - point.y == Approx(4.302652729911275 * 10 / std::sqrt(3.0)));
  CHECK(point.y - *point.below == Approx(*point.above - point.y));
  REQUIRE(panel.series[1].points.size() == 1);
  CHECK(panel.series[1].name == "B");
  CHECK(panel.series[1].points[0].x == 10);
  CHECK(panel.series[1].points[0].y == 75);
  CHECK_FALSE(panel.series[1].points[0].below);
}

TEST_CASE("a marked value is drawn without a preset, whose numbers do not compare with the paper's") {
  std::string text = kFigure;
  const std::string axis = "error: true";
  text.replace(text.find(axis), axis.size(), axis + ", mark: 20.5");
  FigureFiles files;
  const auto file = files.write_figure(text);
  const auto mark_with = [&](const char* preset) {
    const auto filled = collect_figure(read_figure(file, preset), test::figure_schema(), {}, false);
    return filled.charts.at(0).panels.at(0).y.mark;
  };
  CHECK(mark_with("paper") == 20.5);
  CHECK_FALSE(mark_with("smoke"));
}

TEST_CASE("a figure over the epochs has the runs' logs, and leaves out what is null") {
  FigureFiles files;
  const auto log = [](double first, const std::string& second) {
    return fmt::format(
        "{{\"step\": 1, \"epoch\": 1, \"train/gradient_nonzeros\": {}}}\n"
        "{{\"step\": 2, \"epoch\": 2, \"train/gradient_nonzeros\": {}}}\n",
        first, second);
  };
  const std::vector<std::filesystem::path> runs{
      files.run("a1", config_text("a", 0.1, 1), results(0.5), log(4, "5")),
      files.run("a2", config_text("a", 0.1, 2), results(0.5), log(6, "null"))};
  const ChartPanel panel = collect(files, runs).charts[0].panels[1];
  REQUIRE(panel.series.size() == 2);
  CHECK(panel.series[0].name == "A");
  REQUIRE(panel.series[0].points.size() == 2);
  CHECK(panel.series[0].points[0].x == 1);
  CHECK(panel.series[0].points[0].y == 5);
  CHECK(panel.series[0].points[1].y == 5);
  CHECK(panel.series[1].points.empty());
}

TEST_CASE("a figure of one metric against another one pairs the cells of a row") {
  FigureFiles files;
  const std::vector<std::filesystem::path> runs{files.run("a", config_text("a", 1, 1), results(0.2)),
                                                files.run("b", config_text("b", 1, 1), results(0.7)),
                                                files.run("alone", config_text("b", 0.1, 1), results(0.9))};
  const ChartPanel panel = collect(files, runs).charts[1].panels[0];
  REQUIRE(panel.series.size() == 1);
  REQUIRE(panel.series[0].points.size() == 1);
  CHECK(panel.series[0].points[0].label == "1");
  CHECK(panel.series[0].points[0].x == 20);
  CHECK(panel.series[0].points[0].y == 70);
}

TEST_CASE("set sizes are shares of the images of all seeds, up to the largest set") {
  FigureFiles files;
  const std::vector<std::filesystem::path> runs{
      files.run("1", config_text("a", 10, 1), results(0.5, R"("avg2": [0, 3, 1, 0, 0], "few_avg2": [0, 1, 0, 0, 0])")),
      files.run("2", config_text("a", 10, 2), results(0.5, R"("avg2": [0, 1, 2, 1, 0])"))};
  const ChartPanel panel = collect(files, runs).charts[2].panels[0];
  REQUIRE(panel.series.size() == 1);
  std::vector<double> shares;
  for (const ChartPoint& point : panel.series[0].points) shares.push_back(point.y);
  CHECK(shares == std::vector<double>{0, 50, 37.5, 12.5});
  CHECK(panel.series[0].points.back().x == 3);
}

TEST_CASE("of two runs of a seed the one that measured more in its steps is taken") {
  FigureFiles files;
  const std::string log = "{\"step\": 1, \"epoch\": 1, \"train/gradient_nonzeros\": 4}\n{\"step\": 2, \"epoch\": 2}\n";
  const std::vector<std::filesystem::path> runs{
      files.write("runs/bare/config.yaml", config_text("a", 0.1, 1)).parent_path(),
      files.run("full", config_text("a", 0.1, 1), results(0.5), log)};
  files.write("runs/bare/.settrain-run", "");
  files.write("runs/bare/results.json", results(0.25));
  const FilledFigure filled = collect(files, runs);
  CHECK(filled.charts[0].panels[0].series[0].points.at(0).y == 50);
  CHECK(filled.charts[0].panels[1].series[0].points.at(0).y == 4);
  REQUIRE(filled.remarks.size() == 1);
  CHECK_THAT(filled.remarks[0], Contains("bare: repeats seed 1 of"));
}

TEST_CASE("runs that a figure cannot show are said") {
  FigureFiles files;
  const std::vector<std::filesystem::path> runs{
      files.run("other", config_text("a", 77, 1), results(0.2)),
      files.run("ninth", config_text("a", 0.1, 9), results(0.2)), files.run("torn", config_text("a", 1, 1), "[{"),
      files.run("unlogged", config_text("a", 0.1, 1), results(0.5),
                "{\"step\": 1, \"epoch\": 1, \"train/loss\": 3}\n"
                "{\"step\": 2, \"epoch\": 2, \"train/loss\": 2}\n"),
      files.run("cut", config_text("a", 0.1, 2), results(0.5), "{\"step\": 1, \"epoch\": 1, \"train/loss\": 3}\n")};
  const auto remarks_of = [&](bool of_figure_only) {
    std::string all;
    for (const std::string& remark : collect(files, runs, of_figure_only).remarks) all += remark + "\n";
    return all;
  };
  const std::string remarks = remarks_of(true);
  CHECK_THAT(remarks, Contains("other: its config is that of no cell") && Contains("torn/results.json") &&
                          Contains("unlogged: has no train/gradient_nonzeros") &&
                          Contains("cut/metrics.jsonl' has 1 rows, and the run has finished 2 epochs"));
  CHECK_THAT(remarks, !Contains("ninth"));
  // Collected, any seed is welcome.
  CHECK_THAT(remarks_of(false), Contains("ninth/metrics.jsonl' has 0 rows"));
}

TEST_CASE("a Lorenz chart counts the images of all splits, in percent") {
  PaperFigure figure;
  figure.name = "thesis/3.2";
  figure.preset = "paper";
  figure.paper = "A paper";
  Dataset dataset;
  dataset.name = "plants";
  dataset.class_names = {"a", "b", "c", "d"};
  dataset.train.labels = {0, 1, 2, 3, 3, 3};
  dataset.val.labels = {3};
  dataset.test.labels = {2, 3, 3};
  for (Split* split : {&dataset.train, &dataset.val, &dataset.test}) split->ids.resize(split->labels.size());
  const Chart chart = lorenz_chart(figure, dataset);
  CHECK(chart.name == "thesis-3.2");
  CHECK(chart.subtitle == "After A paper. 10 images of 4 classes, all splits.");
  const ChartPanel& panel = chart.panels.at(0);
  REQUIRE(panel.series.size() == 2);
  // Counts of 1, 1, 2 and 6.
  CHECK(panel.series[0].name == "plants, Gini 0.400");
  const std::vector<double> x{0, 25, 50, 75, 100}, y{0, 10, 20, 40, 100};
  REQUIRE(panel.series[0].points.size() == 5);
  for (size_t i = 0; i < 5; ++i) {
    CHECK(panel.series[0].points[i].x == Approx(x[i]));
    CHECK(panel.series[0].points[i].y == Approx(y[i]));
  }
}

}  // namespace settrain
