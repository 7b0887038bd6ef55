#include "src/core/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace settrain {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

bool stderr_is_terminal() {
  const std::string_view term = environment("TERM");
  return ::isatty(STDERR_FILENO) == 1 && !term.empty() && term != "dumb";
}

bool stderr_has_colour() {
  return stderr_is_terminal() && environment("NO_COLOR").empty();
}

int terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace settrain
