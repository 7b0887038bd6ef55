#include "src/papers/figure/lorenz_chart.h"

#include "tests/support/catch2.h"

namespace settrain {

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
