#include "src/parallel/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <thread>

#include "src/core/error.h"

namespace settrain {
namespace {

// Jobs that run on one machine at the same time get ports of their own, outside those that systems hand out.
constexpr int64_t kFirstPort = 15000, kPorts = 15000;

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
    int64_t number = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (problem != std::errc() || end != value.data() + value.size() || number < low || number > high) {
      throw ConfigError(fmt::format("the environment variable {} is '{}': expected a whole number from {} to {}", name,
                                    value, low, high));
    }
    return number;
  }

 private:
  const Environment& environment_;
};

constexpr int64_t kMostProcesses = 1 << 16;
constexpr int64_t kLastPort = std::numeric_limits<uint16_t>::max();

Launch from_torchrun(const Variables& variables) {
  Launch launch;
  launch.launcher = variables.has("TORCHELASTIC_RUN_ID") ? "torchrun" : "settrain";
  launch.world = variables.integer("WORLD_SIZE", 1, kMostProcesses);
  launch.rank = variables.integer("RANK", 0, launch.world - 1);
  launch.local_world = variables.integer("LOCAL_WORLD_SIZE", 1, launch.world);
  launch.local_rank = variables.integer("LOCAL_RANK", 0, launch.local_world - 1);
  launch.host = variables.text("MASTER_ADDR");
  launch.port = static_cast<uint16_t>(variables.integer("MASTER_PORT", 1, kLastPort));
  if (variables.has("TORCHELASTIC_RESTART_COUNT")) launch.attempt = variables.text("TORCHELASTIC_RESTART_COUNT");
  launch.launcher_keeps_store =
      variables.has("TORCHELASTIC_USE_AGENT_STORE") && variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  return launch;
}

Launch from_slurm(const Variables& variables) {
  Launch launch;
  launch.launcher = "slurm";
  launch.world = variables.integer("SLURM_STEP_NUM_TASKS", 1, kMostProcesses);
  launch.rank = variables.integer("SLURM_PROCID", 0, launch.world - 1);
  launch.local_rank = variables.integer("SLURM_LOCALID", 0, launch.world - 1);
  // "2(x3),1" where nodes differ; which number is this node's does not matter to anything but messages.
  launch.local_world = launch.local_rank + 1;
  launch.host = first_host(variables.text("SLURM_STEP_NODELIST"));
  const int64_t job = variables.integer("SLURM_JOB_ID", 0, std::numeric_limits<int64_t>::max());
  launch.port = static_cast<uint16_t>(variables.has("MASTER_PORT") ? variables.integer("MASTER_PORT", 1, kLastPort)
                                                                   : kFirstPort + job % kPorts);
  return launch;
}

// A positive number, or 1: what launch_from() refuses is no matter here.
int64_t count_in(const Environment& environment, const char* name) {
  const std::string value = environment(name).value_or("");
  int64_t number = 0;
  std::from_chars(value.data(), value.data() + value.size(), number);
  return std::max<int64_t>(1, number);
}

}  // namespace

std::optional<std::string> environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

int64_t own_cores(const Environment& environment) {
  const int64_t cores = environment("SLURM_CPUS_PER_TASK") ? count_in(environment, "SLURM_CPUS_PER_TASK")
                                                           : std::thread::hardware_concurrency();
  return std::max<int64_t>(1, cores / count_in(environment, "LOCAL_WORLD_SIZE"));
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
  if (variables.has("RANK") && variables.has("WORLD_SIZE")) return from_torchrun(variables);
  if (variables.has("SLURM_STEP_NUM_TASKS") && variables.integer("SLURM_STEP_NUM_TASKS", 1, kMostProcesses) > 1) {
    return from_slurm(variables);
  }
  return std::nullopt;
}

}  // namespace settrain
