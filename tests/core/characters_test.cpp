#include "src/core/characters.h"

#include "tests/support/catch2.h"

using namespace settrain;

TEST_CASE("Characters are counted and cut whole, however many bytes they take") {
  const std::string text = "a\u00e9\u2192\U0001F600z";  // of one, two, three, four bytes and one
  REQUIRE(text.size() == 11);
  CHECK(count_characters(text) == 5);
  CHECK(first_characters(text, 0).empty());
  CHECK(first_characters(text, 1) == "a");
  CHECK(first_characters(text, 2) == "a\u00e9");
  CHECK(first_characters(text, 3) == "a\u00e9\u2192");
  CHECK(first_characters(text, 4) == "a\u00e9\u2192\U0001F600");
  CHECK(first_characters(text, 5) == text);
  CHECK(first_characters(text, 99) == text);
  CHECK(first_characters("", 3).empty());
}

TEST_CASE("Control characters become question marks, and nothing else does") {
  CHECK(printable("a\x1B[2J\n\x7F") == "a?[2J??");
  CHECK(printable("\xC2\x9B\xC3\xA9\xC2\xA0") == "?\xC3\xA9\xC2\xA0");
  CHECK(printable("\xC2") == "\xC2");
}
