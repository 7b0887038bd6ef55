// Which of several processes this is, as its launcher says: torchrun, srun, or `settrain --processes`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace settrain {

struct Launch {
  std::string launcher;                     // "torchrun", "slurm", "settrain"
  int64_t rank = 0, world = 1;              // of all processes
  int64_t local_rank = 0, local_world = 1;  // of those on this machine
  std::string host;                         // where rank 0, or the launcher, keeps the store
  uint16_t port = 0;
  bool launcher_keeps_store = false;  // rank 0 is a client of it too
  std::string attempt = "0";          // of torchrun's restarts, over which its store stays
};

/// An environment variable, or none.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// What the environment says; none where this process is alone. torchrun and settrain set RANK, WORLD_SIZE, LOCAL_RANK,
/// LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT; a step of Slurm's srun with several tasks has SLURM_PROCID,
/// SLURM_STEP_NUM_TASKS, SLURM_LOCALID and SLURM_STEP_NODELIST, of which the first host keeps the store, on the port
/// MASTER_PORT or else one that follows from the job's number. Throws ConfigError that names the variable where one is
/// missing, no number, or out of range.
std::optional<Launch> launch_from(const Environment& environment);

/// That of this process.
std::optional<std::string> environment_variable(const char* name);

/// The cores that are this process' own: those that Slurm gave to its task (SLURM_CPUS_PER_TASK), else those of the
/// machine; the processes that torchrun or settrain started have equal shares (LOCAL_WORLD_SIZE). At least one.
int64_t own_cores(const Environment& environment = environment_variable);

/// The first host of a Slurm list, "node[03-07,9],other" gives "node03". Throws ConfigError where it is malformed.
std::string first_host(const std::string& list);

}  // namespace settrain
