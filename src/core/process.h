// This process and its system: environment variables, cores, memory, standard streams.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace settrain {

/// An environment variable, or none. Tests pass functions of their own.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// The environment variable of this process.
std::optional<std::string> environment_variable(const char* name);

/// The path of this process' program; where its file was replaced or removed meanwhile, the path that it had.
std::filesystem::path program_file();

/// The cores that are this process' own. A Slurm task has those that it was given (SLURM_CPUS_PER_TASK), or an equal
/// share of those that the tasks of its step have on this machine (SLURM_CPUS_ON_NODE, SLURM_STEP_TASKS_PER_NODE);
/// otherwise all cores of the machine count. Processes that torchrun or settrain started have equal shares of that
/// (LOCAL_WORLD_SIZE). At least one.
int64_t own_cores(const Environment& environment = environment_variable);

/// From now on freed memory stays with the process, to be given out again. By default the C library hands large blocks
/// back to the system, and the kernel clears every page anew when the next training step asks for the same ones, which
/// can take a third of the step. Does nothing where the C library is not glibc.
void keep_freed_memory();

/// From now on threads share the heap's arenas: each keeps what was freed in it, and glibc makes up to eight a core.
/// For many threads that take large blocks in turn.
void share_arenas();

/// Hands freed memory back to the system, as far as the C library keeps some. Does nothing where it is not glibc.
void give_back_freed_memory();

/// Keeps oneDNN, LibTorch's library of CPU kernels, from AMX, the matrix instructions of Intel's Xeons since 2023.
/// AVX-512 with bf16 is used instead. A value that the environment has already stays. To be called before LibTorch
/// computes anything.
void keep_onednn_from_amx();

/// Connects standard input, output and error to /dev/null where they are closed. Else a file that is opened later would
/// take their numbers, and what is printed would go into it.
void open_standard_streams();

/// Whether stderr is a terminal that follows control sequences (TERM is set and is not "dumb").
bool stderr_is_terminal();

/// Whether to colour what goes to stderr: a terminal, and NO_COLOR is unset or empty.
bool stderr_has_colour();

/// Width of the terminal at stderr in columns; 80 where it is unknown. Asked anew each time, since windows change.
int terminal_columns();

/// Width of the terminal at stdout in columns; 0 where there is none, or it is unknown.
int stdout_columns();

}  // namespace settrain
