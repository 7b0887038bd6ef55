#include "src/core/metric_name.h"

#include <catch2/catch.hpp>

namespace settrain {

TEST_CASE("an average-K accuracy has the size of its sets beside it, and nothing else has", "[fast]") {
  CHECK(size_metric("test/avg5") == "test/avg5_size");
  CHECK(size_metric("val/few_avg1.5") == "val/avg1.5_size");
  CHECK(size_metric("test/avg5_size").empty());
  CHECK(size_metric("test/avg5_lambda").empty());
  CHECK(size_metric("test/top5").empty());
}

TEST_CASE("a size and a threshold belong to an accuracy", "[fast]") {
  CHECK(accuracy_metric("test/avg5_size") == "test/avg5");
  CHECK(accuracy_metric("test/avg5_lambda") == "test/avg5");
  CHECK(accuracy_metric("test/macro_avg5") == "test/macro_avg5");
}

}  // namespace settrain
