#include "src/train/selection.h"

#include <cmath>

#include "tests/support/catch2.h"

namespace settrain {
namespace {

TEST_CASE("each metric keeps its own best epoch") {
  Selection selection({"val/top1", "val/top5"});
  CHECK(selection.update(1, std::vector<MetricValue>{{"val/top1", 0.2}, {"val/top5", 0.5}}) ==
        std::vector<size_t>{0, 1});
  CHECK(selection.update(2, std::vector<MetricValue>{{"val/top1", 0.3}, {"val/top5", 0.4}}) == std::vector<size_t>{0});
  CHECK(selection.best()[0].epoch == 2);
  CHECK(selection.best()[1].epoch == 1);
  CHECK(selection.best()[1].value == 0.5);
}

TEST_CASE("metrics of the test split are chosen by alike, and `last` is no metric") {
  Selection selection({"last", "test/top1"});
  REQUIRE(selection.best().size() == 1);
  CHECK(selection.update(1, std::vector<MetricValue>{{"val/top1", 0.9}, {"test/top1", 0.2}}) == std::vector<size_t>{0});
  CHECK(selection.best()[0].value == 0.2);
}

TEST_CASE("an equal value keeps the earlier epoch, and NaN never wins") {
  Selection selection({"val/few_top1"});
  CHECK(selection.update(1, std::vector<MetricValue>{{"val/few_top1", NAN}}).empty());
  CHECK(selection.update(2, std::vector<MetricValue>{{"val/few_top1", 0.0}}).size() == 1);
  CHECK(selection.update(3, std::vector<MetricValue>{{"val/few_top1", 0.0}}).empty());
  CHECK(selection.update(4, std::vector<MetricValue>{{"val/few_top1", NAN}}).empty());
  CHECK(selection.best()[0].epoch == 2);
}

TEST_CASE("of the sizes of a rule's sets the smallest is kept") {
  const std::string metric = "val/size@conformal:lac:0.1";
  Selection selection({metric});
  const auto size = [&](double value) {
    return std::vector<MetricValue>{{.name = metric, .value = value, .better = Better::kLower}};
  };
  CHECK(selection.update(1, size(3.0)).size() == 1);
  CHECK(selection.update(2, size(4.0)).empty());
  CHECK(selection.update(3, size(2.5)).size() == 1);
  CHECK(selection.update(4, size(NAN)).empty());
  CHECK(selection.best()[0].epoch == 3);
}

TEST_CASE("a metric that begins anew takes the next value, and the others stay") {
  Selection selection({"val/top1", "test/top1"});
  selection.update(1, std::vector<MetricValue>{{"val/top1", 0.9}, {"test/top1", 0.8}});
  selection.restart("val/top1");
  CHECK(selection.best()[0].epoch == 0);
  CHECK(selection.update(2, std::vector<MetricValue>{{"val/top1", 0.2}, {"test/top1", 0.3}}) == std::vector<size_t>{0});
  CHECK(selection.best()[0].value == 0.2);
  CHECK(selection.best()[1].epoch == 1);
}

TEST_CASE("a checkpoint carries the best epochs, for the metrics that both know") {
  Selection selection({"val/top1", "val/top5"});
  selection.update(7, std::vector<MetricValue>{{"val/top1", 0.1}, {"val/top5", NAN}});
  Checkpoint checkpoint;
  selection.add_to(checkpoint);

  Selection other({"val/top5", "val/top1", "val/top3"});
  other.restore(checkpoint);
  CHECK(other.best()[0].epoch == 0);
  CHECK(other.best()[1].epoch == 7);
  CHECK(other.best()[1].value == 0.1);
  CHECK(other.best()[2].epoch == 0);

  checkpoint.set_integer("selection.val/top1", 7);
  CHECK_THROWS_WITH(other.restore(checkpoint), Catch::Contains("selection.val/top1"));
}

}  // namespace
}  // namespace settrain
