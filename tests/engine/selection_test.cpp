#include "src/engine/selection.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace settrain {
namespace {

TEST_CASE("each metric keeps its own best epoch", "[fast]") {
  Selection selection({"val/top1", "val/top5"});
  CHECK(selection.update(1, std::vector<MetricValue>{{"top1", 0.2}, {"top5", 0.5}}) == std::vector<size_t>{0, 1});
  CHECK(selection.update(2, std::vector<MetricValue>{{"top1", 0.3}, {"top5", 0.4}}) == std::vector<size_t>{0});
  CHECK(selection.best()[0].epoch == 2);
  CHECK(selection.best()[1].epoch == 1);
  CHECK(selection.best()[1].value == 0.5);
}

TEST_CASE("an equal value keeps the earlier epoch, and NaN never wins", "[fast]") {
  Selection selection({"val/few_top1"});
  CHECK(selection.update(1, std::vector<MetricValue>{{"few_top1", NAN}}).empty());
  CHECK(selection.update(2, std::vector<MetricValue>{{"few_top1", 0.0}}).size() == 1);
  CHECK(selection.update(3, std::vector<MetricValue>{{"few_top1", 0.0}}).empty());
  CHECK(selection.update(4, std::vector<MetricValue>{{"few_top1", NAN}}).empty());
  CHECK(selection.best()[0].epoch == 2);
}

}  // namespace
}  // namespace settrain
