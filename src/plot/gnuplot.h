// Running gnuplot.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace settrain {

/// Runs `gnuplot ARGUMENTS...` in `folder`, without a shell and without the user's initialisation files, and waits for
/// it. Gives what it printed: warnings. Throws Error where PATH has no gnuplot (naming Debian's package), where it
/// cannot be started, or where it fails (with what it printed).
std::string run_gnuplot(const std::filesystem::path& folder, const std::vector<std::string>& arguments);

}  // namespace settrain
