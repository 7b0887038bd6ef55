// Several processes of one training: which of them this is, as its launcher says (torchrun, srun, or `settrain
// --processes`), and starting them on this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/core/process.h"

namespace settrain {

struct Launch {
  int64_t rank = 0, world_size = 1;  // of all processes
  int64_t local_rank = 0;            // of those on this machine
  std::string host;                  // where rank 0, or the launcher, keeps the store
  uint16_t port = 0;
  bool launcher_keeps_store = false;  // rank 0 is a client of it too
  bool may_bind_gpus = false;         // Slurm may show a task the GPU that is its own alone, as number 0
  // Tells starts apart that meet one store: torchrun's restarts, over which its store stays, and Slurm's job steps.
  std::string attempt = "0";
};

/// The launch that the environment describes; none where this process is alone. torchrun and settrain set RANK,
/// WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT; a step of Slurm's srun with several tasks has
/// SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID and SLURM_STEP_NODELIST, of which the first host keeps the store,
/// on the port MASTER_PORT or else one that follows from SLURM_JOB_ID and SLURM_STEP_ID. Throws ConfigError that names
/// the variable where one is missing, no number, or out of range.
std::optional<Launch> launch_from(const Environment& environment);

/// The number of the process' GPU, of those that it sees. Throws ConfigError where there are fewer than processes.
int8_t gpu_of(const Launch& launch, int64_t visible_gpus);

/// The first host of a Slurm list, "node[03-07,9],other" gives "node03". Throws ConfigError where it is malformed.
std::string first_host(const std::string& list);

/// Runs `command` as `processes` processes that launch_from() tells apart, and waits for them all; this process keeps
/// their store. They share its terminal, and end where it does. Signals of interrupted() are passed on to them; where
/// one fails, the others, which notice it themselves, are ended after a minute at the latest. Logs an error where a
/// signal ended one. Returns the largest of their exit codes (128 + N where signal N ended one). Throws ParallelError
/// where no process can be started, or no port is free.
int start_processes(const std::vector<std::string>& command, int64_t processes);

/// Called by a process that start_processes() may have started: it ends, by SIGTERM, where its parent ends.
void end_with_parent();

}  // namespace settrain
