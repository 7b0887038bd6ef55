#include "src/core/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "tests/support/catch2.h"

using namespace settrain;

TEST_CASE("A descriptor closes its file once, when its last owner goes") {
  const int number = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  {
    Descriptor first(number);
    const Descriptor second = std::move(first);
    CHECK_FALSE(first.is_open());
    CHECK(second.get() == number);
    CHECK(::fcntl(number, F_GETFD) >= 0);
  }
  CHECK(::fcntl(number, F_GETFD) == -1);
}

TEST_CASE("write_all writes more than a pipe takes at once") {
  std::array<int, 2> ends;
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    const std::string text(1'000'000, 'x');
    ::_exit(write_all(Descriptor(ends[1]), text.data(), text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  const Descriptor input(ends[0]);
  size_t total = 0;
  std::array<char, 4096> buffer;
  for (ssize_t got; (got = ::read(input.get(), buffer.data(), buffer.size())) > 0;) total += static_cast<size_t>(got);
  CHECK(total == 1'000'000);
}

TEST_CASE("write_all says no with the reason in errno") {
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  CHECK_FALSE(write_all(full, "x", 1));
  CHECK(errno == ENOSPC);
}

TEST_CASE("File errors say what, where, why, and what to do") {
  CHECK(std::string(file_error("write", "runs/a", ENOSPC).what()) ==
        "cannot write 'runs/a': No space left on device; free some space, or choose another folder");
  CHECK(std::string(file_error("open", "runs/a", EISDIR).what()) == "cannot open 'runs/a': Is a directory");
}
