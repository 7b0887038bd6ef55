// Other programs that settrain runs: curl, tar, unzip, gnuplot.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace settrain {

/// A program to run.
struct ChildProcess {
  std::vector<std::string> command;  // its name, which is looked for in PATH, and its arguments; no shell reads them
  std::string package;               // Debian's package that has it, for the error where it is missing
  std::function<void()> meanwhile = {};  // called about ten times a second while it runs; may throw, which ends it
  int keep_open = -1;                    // a descriptor that it inherits, such as a lock's, which it then holds too
  std::filesystem::path folder = {};     // where it runs; empty: here
};

/// How a program ended.
struct ChildEnd {
  int code = 0;         // its exit code; 128 + N where signal N ended it
  std::string printed;  // the last kilobytes of what it printed, without blanks at the end
};

/// Runs the program with an empty standard input and waits for its end. Throws Error where there is no such program, or
/// it cannot be started; where `meanwhile` throws, ends the program (SIGTERM), waits for it, and throws on.
ChildEnd run_child(const ChildProcess& process);

}  // namespace settrain
