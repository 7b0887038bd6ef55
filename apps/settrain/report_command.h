// `settrain report`.
#pragma once

#include "apps/settrain/command_line.h"

namespace settrain {

void add_report_command(CLI::App& app, CommandLine& line);

}  // namespace settrain
