// The program, apart from the parser's heavy header.
#pragma once

namespace settrain {

/// Parses, runs and returns the exit code; the one place where errors end.
int run_command_line(int argc, char** argv);

}  // namespace settrain
