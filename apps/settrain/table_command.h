// The subcommand `table`.
#pragma once

#include "apps/settrain/command_line.h"

namespace settrain {

void add_table_command(CLI::App& app, CommandLine& line);

}  // namespace settrain
