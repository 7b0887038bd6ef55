#include "src/parallel/start_processes.h"

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
#include <map>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"

namespace settrain {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr const char* kParent = "SETTRAIN_PARENT";  // the process that started this one
constexpr milliseconds kBetweenLooks{50};
constexpr seconds kUntilTerminated{15}, kUntilKilled{60};  // after the first one failed

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
      const bool by_itself = passed_on == 0;  // or by who knows whom
      if (ended->code != 0 && worst == 0) failed_at = Clock::now();
      if (by_itself || interrupted() != 0) worst = std::max(worst, ended->code);
      // Any other failure it has told itself.
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
