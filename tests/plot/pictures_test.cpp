#include "src/plot/pictures.h"

#include "src/core/error.h"
#include "tests/plot/fake_gnuplot.h"
#include "tests/plot/has_gnuplot.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;
using Catch::Message;
using test::FakeGnuplot;

TEST_CASE("Without gnuplot the error names the ways to get it") {
  const FakeGnuplot none;
  const test::TemporaryFolder folder;
  CHECK_THROWS_AS(run_gnuplot(folder.path(), {"a.gp"}), Error);
  CHECK_THROWS_WITH(run_gnuplot(folder.path(), {"a.gp"}), Contains("gnuplot-nox") && Contains("conda-forge"));
}

TEST_CASE("gnuplot runs in the folder, and no shell reads its arguments") {
  const FakeGnuplot fake("printf '%s\\n' \"$@\" >arguments");
  const test::TemporaryFolder folder;
  run_gnuplot(folder.path(), {"-e", "out='a b'", "$(touch owned); `touch owned`.gp"});
  CHECK(test::read_file(folder / "arguments") == "-d\n-e\nout='a b'\n$(touch owned); `touch owned`.gp\n");
  CHECK_FALSE(std::filesystem::exists(folder / "owned"));
}

TEST_CASE("What a failing gnuplot prints is in the error") {
  const test::TemporaryFolder folder;
  {
    const FakeGnuplot fake("echo 'line 3: undefined variable' >&2; exit 4");
    CHECK_THROWS_MATCHES(run_gnuplot(folder.path(), {"a.gp"}), Error,
                         Message("gnuplot failed with exit code 4:\nline 3: undefined variable"));
  }
  const FakeGnuplot killed("kill -9 $$");
  CHECK_THROWS_MATCHES(run_gnuplot(folder.path(), {"a.gp"}), Error, Message("gnuplot was ended by signal 9"));
}

TEST_CASE("More output than is kept does not stop gnuplot, and warnings are no failure") {
  const FakeGnuplot fake("i=0; while [ $i -lt 20000 ]; do echo warning >&2; i=$((i+1)); done");
  const test::TemporaryFolder folder;
  CHECK_THAT(run_gnuplot(folder.path(), {"a.gp"}), Catch::EndsWith("warning\nwarning"));
}

TEST_CASE("A folder that is not there is reported as such") {
  const FakeGnuplot fake("exit 0");
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(run_gnuplot(folder / "none", {"a.gp"}), Contains("none") && !Contains("gnuplot-nox"));
}

TEST_CASE("a text in a script is a text, whatever it holds") {
  CHECK(gnuplot_string("a (b), \u03b5 50 %") == "\"a (b), \u03b5 50 %\"");
  CHECK(gnuplot_string("\"`{'\\\n") == R"("\042\140\173\047\134\012")");
  CHECK(tic_string("50 %\n" + std::string(40, 'x')) == "\"50 %% " + std::string(23, 'x') + "\u2026\"");
}

TEST_CASE("long texts are broken at blanks, or cut, never within a character") {
  CHECK(wrapped("", 10).empty());
  CHECK(wrapped("one two\nthree", 9) == "one two\nthree");
  CHECK(wrapped("a longer-than-that word", 5) == "a\nlonger-than-that\nword");
  CHECK(shortened("abc", 3) == "abc");
  CHECK(shortened("ab\u03b5\u03b5", 3) == "ab\u03b5\u2026");
}

TEST_CASE("gnuplot reads such a text as it is") {
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

TEST_CASE("the title of a script is a comment") {
  CHECK_THAT(picture_script({.name = "a", .title = "two\nlines"}), Contains("# two lines. Draws a.svg and a.png;"));
}

TEST_CASE("what can be drawn is drawn, and the rest is named") {
  const test::TemporaryFolder folder;
  const test::FakeGnuplot fake(
      "eval \"$3\"; [ \"$4\" = ./b.gp ] && exit 1; echo '</svg>' >$out.svg; echo IEND >$out.png");
  const std::vector<Picture> pictures{{.name = "a"}, {.name = "b", .data = "1"}, {.name = "c", .ending = ".csv"}};
  const auto draw = [&] {
    return draw_pictures(
        3, [&](size_t i) { return pictures[i]; }, folder.path());
  };
  CHECK_THROWS_WITH(draw(), Contains("run `gnuplot b.gp` in") && !Contains("a.gp") && !Contains("c.gp"));
  for (const char* file : {"a.svg", "a.png", "a.dat", "a.gp", "b.dat", "b.gp", "c.svg", "c.png", "c.csv", "c.gp"}) {
    CHECK(std::filesystem::exists(folder / file));
  }
  CHECK_FALSE(std::filesystem::exists(folder / "b.svg"));
  CHECK(test::read_file(folder / "b.dat") == "1");
}

TEST_CASE("a picture that gnuplot could not write all of is none") {
  const test::TemporaryFolder folder;
  const auto draw = [&](const std::string& svg) {
    // Its second argument is out='...'.
    const test::FakeGnuplot fake("eval \"$3\"; echo '" + svg + "' >$out.svg; echo 'PNG IEND' >$out.png");
    draw_pictures(
        1, [](size_t) { return Picture{.name = "a"}; }, folder.path());
  };
  CHECK_THROWS_WITH(draw("<svg><path d="), Contains("could not write all of a picture") && Contains("disk full"));
  CHECK_FALSE(std::filesystem::exists(folder / "a.svg"));
  CHECK_FALSE(std::filesystem::exists(folder / "a.png"));
  draw("<svg></svg>");
  CHECK(std::filesystem::exists(folder / "a.svg"));
}
