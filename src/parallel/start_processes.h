// Several processes of one program on this machine, without another launcher.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace settrain {

/// Runs `command` as `processes` processes that launch_from() tells apart, and waits for them all; this process keeps
/// their store. They share its terminal, and end where it does. Signals of interrupted() are passed on to them; where
/// one fails, the others, which notice it themselves, are ended after a minute at the latest. Logs an error where a
/// signal ended one. Returns the largest of their exit codes (128 + N where signal N ended one). Throws ParallelError
/// where no process can be started, or no port is free.
int start_processes(const std::vector<std::string>& command, int64_t processes);

/// Of a process that start_processes() started: it ends, by SIGTERM, where the one that started it does.
void end_with_parent();

}  // namespace settrain
