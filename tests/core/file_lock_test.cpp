#include "src/core/file_lock.h"

#include <unistd.h>

#include <array>
#include <optional>

#include "tests/support/catch2.h"
#include "tests/support/child_process.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;

TEST_CASE("A lock held by another process is refused with its id and host, until that process dies") {
  const test::TemporaryFolder folder;
  std::array<int, 2> ready;
  REQUIRE(::pipe(ready.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const FileLock lock(folder / "lock");
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::pause();
  }
  char byte;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK_THROWS_WITH(FileLock(folder / "lock"),
                    Contains("'" + folder.path().string() + "' is being written by process " + std::to_string(child) +
                             " on " + host_name()));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK_NOTHROW(FileLock(folder / "lock"));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("A lock excludes a second one of the same process, and ends with its object") {
  const test::TemporaryFolder folder;
  std::optional<FileLock> first(folder / "lock");
  CHECK(test::read_file(folder / "lock") == std::to_string(::getpid()) + " " + host_name() + "\n");
  CHECK_THROWS_AS(FileLock(folder / "lock"), RunError);
  first.reset();
  CHECK_NOTHROW(FileLock(folder / "lock"));
}

TEST_CASE("A moved lock stays locked") {
  const test::TemporaryFolder folder;
  FileLock first(folder / "lock");
  const FileLock second = std::move(first);
  CHECK_THROWS_AS(FileLock(folder / "lock"), RunError);
}

TEST_CASE("A lock file that cannot be made is an error that names it") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(FileLock(folder / "none" / "lock"), Contains("cannot open") && Contains("none/lock"));
}
