// `settrain figure NAME` and `settrain figure list`.
#pragma once

#include "apps/settrain/command_line.h"

namespace settrain {

/// Gives the subcommand `figure` its positional name and options.
void add_paper_figures(CLI::App& figure, CommandLine& line);

}  // namespace settrain
