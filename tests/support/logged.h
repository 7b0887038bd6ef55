// Captures log lines, for tests of warnings.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "src/core/log.h"
#include "tests/support/temporary_folder.h"

namespace settrain::test {

/// The log lines of `action`. A log file that was open before is closed.
template <typename Action>
std::string logged(Action action) {
  const TemporaryFolder folder;
  log::open_file(folder / "log.txt");
  action();
  log::close_file();
  std::ifstream file(folder / "log.txt");
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace settrain::test
