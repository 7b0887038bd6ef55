#include "src/parallel/launch.h"

#include <fmt/format.h>

#include <limits>

#include "src/core/error.h"
#include "src/core/text.h"

namespace settrain {
namespace {

// Jobs, and steps of a job, that run on one machine at the same time get ports of their own, outside those that systems
// hand out. A step's is not that of a job soon after.
constexpr int64_t kFirstPort = 15000, kPorts = 15000, kStepsApart = 1009;

class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  bool has(const char* name) const { return environment_(name).has_value(); }

  std::string text(const char* name) const {
    const std::optional<std::string> value = environment_(name);
    if (!value || value->empty()) throw ConfigError(fmt::format("the environment variable {} is missing", name));
    return *value;
  }

  int64_t integer(const char* name, int64_t low, int64_t high) const {
    const std::string value = text(name);
    const std::optional<int64_t> number = parse_number<int64_t>(value);
    if (!number || *number < low || *number > high) {
      throw ConfigError(fmt::format("the environment variable {} is '{}': expected a whole number from {} to {}", name,
                                    value, low, high));
    }
    return *number;
  }

 private:
  const Environment& environment_;
};

constexpr int64_t kMostProcesses = 1 << 16;
constexpr int64_t kLastPort = std::numeric_limits<uint16_t>::max();

Launch from_torchrun(const Variables& variables) {
  Launch launch;
  launch.world_size = variables.integer("WORLD_SIZE", 1, kMostProcesses);
  launch.rank = variables.integer("RANK", 0, launch.world_size - 1);
  const int64_t on_this_machine = variables.integer("LOCAL_WORLD_SIZE", 1, launch.world_size);
  launch.local_rank = variables.integer("LOCAL_RANK", 0, on_this_machine - 1);
  launch.host = variables.text("MASTER_ADDR");
  launch.port = static_cast<uint16_t>(variables.integer("MASTER_PORT", 1, kLastPort));
  if (variables.has("TORCHELASTIC_RESTART_COUNT")) launch.attempt = variables.text("TORCHELASTIC_RESTART_COUNT");
  launch.launcher_keeps_store =
      variables.has("TORCHELASTIC_USE_AGENT_STORE") && variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  return launch;
}

Launch from_slurm(const Variables& variables) {
  Launch launch;
  launch.world_size = variables.integer("SLURM_STEP_NUM_TASKS", 1, kMostProcesses);
  launch.rank = variables.integer("SLURM_PROCID", 0, launch.world_size - 1);
  launch.local_rank = variables.integer("SLURM_LOCALID", 0, launch.world_size - 1);
  launch.may_bind_gpus = true;
  launch.host = first_host(variables.text("SLURM_STEP_NODELIST"));
  constexpr int64_t kLast = std::numeric_limits<uint32_t>::max();
  const int64_t job = variables.integer("SLURM_JOB_ID", 0, kLast), step = variables.integer("SLURM_STEP_ID", 0, kLast);
  launch.attempt = fmt::format("{}.{}", job, step);
  launch.port = static_cast<uint16_t>(variables.has("MASTER_PORT") ? variables.integer("MASTER_PORT", 1, kLastPort)
                                                                   : kFirstPort + (job + kStepsApart * step) % kPorts);
  return launch;
}

}  // namespace

int8_t gpu_of(const Launch& launch, int64_t visible_gpus) {
  if (launch.may_bind_gpus && visible_gpus == 1) return 0;
  if (launch.local_rank < visible_gpus) return static_cast<int8_t>(launch.local_rank);
  throw ConfigError(
      fmt::format("process {} has no GPU: number {} on a machine with {}; start as many processes as GPUs", launch.rank,
                  launch.local_rank, visible_gpus));
}

std::string first_host(const std::string& list) {
  const auto malformed = [&] {
    return ConfigError(fmt::format("'{}' is no list of hosts as Slurm writes them", list));
  };
  const size_t end = list.find_first_of(",[");
  std::string host = list.substr(0, end);
  if (end != std::string::npos && list[end] == '[') {
    const size_t close = list.find(']', end);
    if (close == std::string::npos) throw malformed();
    host += list.substr(end + 1, list.find_first_of("-,]", end + 1) - end - 1);
    // What follows the brackets belongs to the name: "rack[1-2]-a".
    const size_t after = list.find_first_of(",[", close + 1);
    host += list.substr(close + 1, after == std::string::npos ? after : after - close - 1);
  }
  if (host.empty()) throw malformed();
  return host;
}

std::optional<Launch> launch_from(const Environment& environment) {
  const Variables variables(environment);
  const bool has_rank = variables.has("RANK"), has_size = variables.has("WORLD_SIZE");
  // One without the other is a mistake only where somebody meant to launch: other programs set them too.
  if ((has_rank && has_size) || ((has_rank || has_size) && variables.has("MASTER_ADDR")))
    return from_torchrun(variables);
  if (variables.has("SLURM_STEP_NUM_TASKS") && variables.integer("SLURM_STEP_NUM_TASKS", 1, kMostProcesses) > 1) {
    return from_slurm(variables);
  }
  return std::nullopt;
}

}  // namespace settrain
