#include "src/parallel/launch.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"

namespace settrain {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr int64_t kMostProcesses = 1 << 16;
constexpr int64_t kLastPort = std::numeric_limits<uint16_t>::max();
// Jobs, and steps of a job, that run on one machine at the same time get ports of their own, outside those that systems
// hand out. A step's is not that of a job soon after.
constexpr int64_t kFirstPort = 15000, kPorts = 15000, kStepsApart = 1009;
constexpr const char* kParent = "SETTRAIN_PARENT";  // the variable with the process that started this one
constexpr milliseconds kBetweenLooks{50};
constexpr seconds kUntilTerminated{15}, kUntilKilled{60};  // after the first one failed

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

// The environment of this process, with `added` in front, where the first of a name counts.
std::vector<std::string> environment_with(std::vector<std::string> added) {
  for (char** entry = environ; *entry; ++entry) added.emplace_back(*entry);
  return added;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

class Children {
 public:
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() {
    signal_all(SIGKILL);
    while (!children_.empty()) take_ended(true);
  }

  void start(int64_t rank, std::vector<std::string> command, std::vector<std::string> environment) {
    pid_t child = 0;
    const int code = ::posix_spawnp(&child, command.at(0).c_str(), nullptr, nullptr, pointers(command).data(),
                                    pointers(environment).data());
    if (code != 0) throw ParallelError(fmt::format("{} cannot be started: {}", command[0], std::strerror(code)));
    children_.emplace(rank, child);
  }

  void signal_all(int signal) const {
    for (const auto& [rank, child] : children_) ::kill(child, signal);
  }

  bool empty() const { return children_.empty(); }

  struct Ended {
    int64_t rank;
    int signal;  // that ended it, or 0
    int code;    // its exit code; 128 + signal
  };
  std::optional<Ended> take_ended(bool wait) {
    int status = 0;
    for (auto child = children_.begin(); child != children_.end(); ++child) {
      const pid_t ended = ::waitpid(child->second, &status, wait ? 0 : WNOHANG);
      if (ended == 0 || (ended < 0 && errno == EINTR)) continue;
      const int64_t rank = child->first;
      children_.erase(child);
      const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      return Ended{rank, signal, signal != 0 ? 128 + signal : WEXITSTATUS(status)};
    }
    return std::nullopt;
  }

 private:
  std::map<int64_t, pid_t> children_;  // by rank
};

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
    // The text behind the brackets belongs to the name: "rack[1-2]-a".
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

void end_with_parent() {
  const char* const parent = std::getenv(kParent);
  if (!parent) return;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (std::to_string(::getppid()) != parent) ::raise(SIGTERM);  // it has ended already
}

int start_processes(const std::vector<std::string>& command, int64_t processes) {
  c10d::TCPStoreOptions options;
  options.port = 0;  // any that is free
  options.isServer = true;
  options.waitWorkers = false;
  std::optional<c10d::TCPStore> store;
  try {
    store.emplace("127.0.0.1", options);
  } catch (const std::exception& error) {
    throw ParallelError(fmt::format("no port for the processes' store: {}", error.what()));
  }
  Children children;
  const std::string world = std::to_string(processes);
  for (int64_t rank = 0; rank < processes; ++rank) {
    const std::string number = std::to_string(rank);
    children.start(
        rank, command,
        environment_with({"RANK=" + number, "LOCAL_RANK=" + number, "WORLD_SIZE=" + world, "LOCAL_WORLD_SIZE=" + world,
                          "MASTER_ADDR=127.0.0.1", fmt::format("MASTER_PORT={}", store->getPort()),
                          "TORCHELASTIC_USE_AGENT_STORE=True", fmt::format("{}={}", kParent, ::getpid())}));
  }
  int worst = 0, passed_on = 0;
  Clock::time_point failed_at;
  while (!children.empty()) {
    if (const auto ended = children.take_ended(false)) {
      const bool by_itself = passed_on == 0;  // its own failure, or a signal from elsewhere
      if (ended->code != 0 && worst == 0) failed_at = Clock::now();
      if (by_itself || interrupted() != 0) worst = std::max(worst, ended->code);
      // The process has reported any other failure itself.
      if (ended->signal != 0 && by_itself)
        log::error(fmt::format("process {} of {} was ended by signal {}", ended->rank, processes, ended->signal));
      continue;
    }
    if (const int signal = interrupted(); signal != 0 && passed_on == 0) {
      // A terminal's Ctrl-C has reached them already, and a second SIGINT would end them at once.
      children.signal_all(passed_on = signal == SIGINT ? SIGTERM : signal);
    }
    if (worst != 0 && passed_on != SIGKILL) {
      const auto since = Clock::now() - failed_at;
      if (since > kUntilKilled) {
        children.signal_all(passed_on = SIGKILL);
      } else if (since > kUntilTerminated && passed_on == 0) {
        children.signal_all(passed_on = SIGTERM);
      }
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return interrupted() != 0 && worst != 0 ? 128 + interrupted() : worst;
}

}  // namespace settrain
