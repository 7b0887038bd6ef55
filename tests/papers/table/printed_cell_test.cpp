#include "src/papers/table/printed_cell.h"

#include "tests/support/catch2.h"

namespace settrain {

TEST_CASE("a printed cell is read as it stands") {
  const auto plain = parse_printed("94.2");
  REQUIRE(plain);
  CHECK(plain->value == 94.2);
  CHECK_FALSE(plain->spread);
  CHECK_FALSE(plain->is_absent());

  const auto whole = parse_printed("36.3±0.3 (12.6/42.9/71.7)");
  REQUIRE(whole);
  CHECK(whole->value == 36.3);
  CHECK(whole->spread == 0.3);
  CHECK(whole->groups == std::vector<double>{12.6, 42.9, 71.7});
  CHECK(whole->text == "36.3±0.3 (12.6/42.9/71.7)");

  CHECK(parse_printed("42.4 ± 0.3")->spread == 0.3);
}

TEST_CASE("what stands for no number has none") {
  CHECK(parse_printed("-")->is_absent());
  for (const char* word : {"NA", "stable", "overflow"}) {
    const auto cell = parse_printed(word);
    REQUIRE(cell);
    CHECK_FALSE(cell->value);
    CHECK_FALSE(cell->is_absent());
  }
}

TEST_CASE("other texts are refused") {
  for (const char* text : {"", "94,2", "94.2±", "94.2 (1/2", "94.2 ()", "94.2 (1/)", "94.2 x", "inf", "nan", "±1"}) {
    INFO(text);
    CHECK_FALSE(parse_printed(text));
  }
}

}  // namespace settrain
