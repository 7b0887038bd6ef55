// With gnuplot itself.
#include "src/plot/pictures.h"

#include <catch2/catch.hpp>

#include "src/plot/gnuplot.h"
#include "tests/plot/fake_gnuplot.h"
#include "tests/plot/has_gnuplot.h"
#include "tests/support/read_file.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Matchers::Contains;

TEST_CASE("a text in a script is a text, whatever it holds", "[fast]") {
  CHECK(gnuplot_string("a \"b\" `touch owned` c's \\ d") == "'a \"b\" `touch owned` c''s \\ d'");
  CHECK(gnuplot_string("two\nlines\x7f") == "'two lines '");
  CHECK(gnuplot_string("'a'") == "'' . \"'\" . 'a'''");
}

TEST_CASE("gnuplot reads such a text as it is", "[fast]") {
  SKIP_UNLESS(test::has_gnuplot(), test::kNoGnuplot);
  const test::TemporaryFolder folder;
  for (const std::string text :
       {"a \"b\" `touch owned` c's \\ d \\n {e}_2 %d # \u03b5", "'", "''", "'a''b'''", "`", "{", "\\", ""}) {
    CAPTURE(text);
    folder.write("text.gp", "do for [i in \"1\"] {\nprint " + gnuplot_string(text) + "\n}\n");
    CHECK(run_gnuplot(folder.path(), {"text.gp"}) == text);
  }
  CHECK_FALSE(std::filesystem::exists(folder / "owned"));
}

TEST_CASE("the title of a script is a comment, and data may have another ending", "[fast]") {
  const std::string text = picture_script({.name = "a", .title = "two\nlines", .data_ending = ".csv"});
  CHECK_THAT(text, Contains("# two lines. Draws a.svg and a.png from a.csv;") && Contains("data = 'a.csv'"));
  CHECK(figure_files("a", "f") == std::vector<std::filesystem::path>{"f/a.svg", "f/a.png", "f/a.dat", "f/a.gp"});
  CHECK(figure_files("a", "f", ".csv")[2] == "f/a.csv");
}

TEST_CASE("a picture that gnuplot could not write all of is none", "[fast]") {
  const test::TemporaryFolder folder;
  const auto draw = [&](const std::string& svg) {
    // Its second argument is out='...'.
    const test::FakeGnuplot fake("eval \"$3\"; echo '" + svg + "' >$out.svg; echo 'PNG IEND' >$out.png");
    draw_pictures("a", folder.path());
  };
  CHECK_THROWS_WITH(draw("<svg><path d="), Contains("could not write all of a picture") && Contains("disk full"));
  CHECK(std::filesystem::is_empty(folder.path()));
  draw("<svg></svg>");
  CHECK(std::filesystem::exists(folder / "a.svg"));
}
