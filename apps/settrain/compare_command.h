// `settrain compare`.
#pragma once

#include "apps/settrain/command_line.h"

namespace settrain {

void add_compare_command(CLI::App& app, CommandLine& line);

}  // namespace settrain
