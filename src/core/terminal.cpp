#include "src/core/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <tuple>

namespace settrain {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// 0 where it is no terminal, or one that does not say.
int columns_of(int stream) {
  winsize size{};
  return ::ioctl(stream, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest free number is given out: this one, since those below it are open by now.
    if (::fcntl(stream, F_GETFD) < 0) std::ignore = ::open("/dev/null", O_RDWR);
  }
}

bool stderr_is_terminal() {
  const std::string_view term = environment("TERM");
  return ::isatty(STDERR_FILENO) == 1 && !term.empty() && term != "dumb";
}

bool stderr_has_colour() {
  return stderr_is_terminal() && environment("NO_COLOR").empty();
}

int terminal_columns() {
  const int columns = columns_of(STDERR_FILENO);
  return columns > 0 ? columns : 80;
}

int stdout_columns() {
  return columns_of(STDOUT_FILENO);
}

}  // namespace settrain
