#include "src/core/terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/support/catch2.h"
#include "tests/support/child_process.h"

using namespace settrain;

namespace {

// Runs `work` in a child whose stderr is a new terminal of 123 columns.
template <class Work>
int run_on_terminal(Work work) {
  return test::run_in_child([&] {
    const int controller = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (controller < 0 || ::grantpt(controller) != 0 || ::unlockpt(controller) != 0) return 100;
    const int terminal = ::open(::ptsname(controller), O_RDWR | O_NOCTTY);
    const winsize size{40, 123, 0, 0};
    if (::ioctl(terminal, TIOCSWINSZ, &size) != 0 || ::dup2(terminal, STDERR_FILENO) < 0) return 101;
    ::setenv("TERM", "xterm", 1);
    ::unsetenv("NO_COLOR");
    return work();
  });
}

}  // namespace

TEST_CASE("A terminal is recognised, with its width") {
  CHECK(run_on_terminal(
            [] { return stderr_is_terminal() && stderr_has_colour() && terminal_columns() == 123 ? 0 : 1; }) == 0);
}

TEST_CASE("A dumb terminal and one without TERM take no control sequences") {
  CHECK(run_on_terminal([] {
          ::setenv("TERM", "dumb", 1);
          if (stderr_is_terminal() || stderr_has_colour()) return 1;
          ::unsetenv("TERM");
          return stderr_is_terminal() ? 2 : 0;
        }) == 0);
}

TEST_CASE("NO_COLOR keeps the terminal and takes the colour") {
  CHECK(run_on_terminal([] {
          ::setenv("NO_COLOR", "1", 1);
          return stderr_is_terminal() && !stderr_has_colour() ? 0 : 1;
        }) == 0);
}

TEST_CASE("A file is no terminal, and 80 columns wide") {
  CHECK(test::run_in_child([] {
          ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
          ::setenv("TERM", "xterm", 1);
          return !stderr_is_terminal() && !stderr_has_colour() && terminal_columns() == 80 ? 0 : 1;
        }) == 0);
}
