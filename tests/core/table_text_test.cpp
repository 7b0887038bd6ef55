#include "src/core/table_text.h"

#include "tests/support/catch2.h"

using namespace settrain;

TEST_CASE("Lines are broken at blanks, and all but the first are indented") {
  CHECK(wrap_words("one two three", 7, 2) == "one two\n  three\n");
  CHECK(wrap_words("one\ntwo three four", 8, 2) == "one\n  two\n  three\n  four\n");
  CHECK(wrap_words("one  two  three", 9, 2) == "one  two\n  three\n");
  CHECK(wrap_words("a longest_of_all b", 6, 2) == "a\n  longest_of_all\n  b\n");
  CHECK(wrap_words("longest_of_all ", 6, 2) == "longest_of_all \n");
  CHECK(wrap_words("", 6, 2) == "");
  CHECK(wrap_words("a b\nc d", 1, 4) == "a\n    b\n    c\n    d\n");  // narrower than the indent
  CHECK(wrap_words("\u03b5\u03b5\u03b5 \u03b5\u03b5", 6, 2) == "\u03b5\u03b5\u03b5 \u03b5\u03b5\n");
}
