#include "metrics/sets/set_rule.h"

#include <catch2/catch.hpp>
namespace settrain {
namespace {
TEST_CASE("a rule keeps its name", "[fast]") {
  CHECK(parse_set_rule("top:5").name() == "top:5");
}
}  // namespace
}  // namespace settrain
