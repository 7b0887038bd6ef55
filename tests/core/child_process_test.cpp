#include "src/core/child_process.h"

#include <sys/file.h>

#include <chrono>
#include <stdexcept>

#include "src/core/error.h"
#include "src/core/files.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;

namespace {

ChildProcess shell(const std::string& script) {
  return {{"sh", "-c", script}, "dash", nullptr, -1};
}

}  // namespace

TEST_CASE("A program's exit code, or signal, and what it printed come back") {
  CHECK(run_child(shell("exit 0")).code == 0);
  const ChildEnd failed = run_child(shell("echo out; echo problem >&2; exit 7"));
  CHECK(failed.code == 7);
  CHECK(failed.printed == "out\nproblem");
  CHECK(run_child(shell("kill -9 $$")).code == 128 + 9);
}

TEST_CASE("The end of a long output is kept, and no pipe fills up") {
  const ChildEnd end = run_child(shell("i=0; while [ $i -lt 30000 ]; do echo line $i; i=$((i+1)); done"));
  CHECK(end.printed.size() <= 4096);
  CHECK_THAT(end.printed, Catch::EndsWith("line 29999"));
}

TEST_CASE("No shell reads the arguments, and standard input is empty") {
  CHECK(run_child({{"printf", "%s", "$(echo a); 'b'"}, "coreutils", nullptr, -1}).printed == "$(echo a); 'b'");
  CHECK(run_child({{"cat"}, "coreutils", nullptr, -1}).printed.empty());
}

TEST_CASE("A program that is not there names the package") {
  CHECK_THROWS_WITH(run_child({{"no-such-program"}, "its-package", nullptr, -1}),
                    Contains("no-such-program") && Contains("its-package"));
}

TEST_CASE("The work meanwhile can end the program") {
  ChildProcess sleeper = shell("sleep 60");
  int calls = 0;
  sleeper.meanwhile = [&] {
    if (++calls == 3) throw std::runtime_error("enough");
  };
  const auto start = std::chrono::steady_clock::now();
  CHECK_THROWS_WITH(run_child(sleeper), "enough");
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
}

TEST_CASE("A program can hold a lock for longer than this one") {
  const test::TemporaryFolder folder;
  {
    const FileLock lock(folder / "lock");
    ChildProcess holder = shell("sleep 3 & exit 0");
    holder.keep_open = lock.descriptor();
    CHECK(run_child(holder).code == 0);
  }
  CHECK_THROWS_AS(FileLock(folder / "lock"), RunError);
}
