#include "src/plot/gnuplot.h"

#include <fmt/format.h>

#include <cerrno>

#include "src/core/child_process.h"
#include "src/core/error.h"
#include "src/core/files.h"

namespace settrain {

namespace fs = std::filesystem;

std::string run_gnuplot(const fs::path& folder, const std::vector<std::string>& arguments) {
  if (!fs::is_directory(folder)) throw file_error("open", folder, ENOENT);
  std::vector<std::string> command{"gnuplot", "-d"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const ChildEnd end = run_child({.command = command, .package = "gnuplot-nox", .folder = folder});
  if (end.code == 0) return end.printed;
  const std::string how = end.code > 128 ? fmt::format("was ended by signal {}", end.code - 128)
                                         : fmt::format("failed with exit code {}", end.code);
  throw Error(fmt::format("gnuplot {}{}", how, end.printed.empty() ? "" : ":\n" + end.printed));
}

}  // namespace settrain
