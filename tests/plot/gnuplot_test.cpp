#include "src/plot/gnuplot.h"

#include "src/core/error.h"
#include "tests/plot/fake_gnuplot.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"

using namespace settrain;
using Catch::Contains;
using Catch::Message;
using test::FakeGnuplot;

TEST_CASE("Without gnuplot the error names Debian's package") {
  const FakeGnuplot none;
  const test::TemporaryFolder folder;
  CHECK_THROWS_AS(run_gnuplot(folder.path(), {"a.gp"}), Error);
  CHECK_THROWS_WITH(run_gnuplot(folder.path(), {"a.gp"}), Contains("gnuplot-nox"));
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

TEST_CASE("A folder that is not there is told as such") {
  const FakeGnuplot fake("exit 0");
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(run_gnuplot(folder / "none", {"a.gp"}), Contains("none") && !Contains("gnuplot-nox"));
}
