#include "src/core/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "src/core/files.h"

namespace settrain {
namespace {

using std::chrono::milliseconds;

constexpr off_t kMostPrinted = 4096;  // bytes of the output that are kept, from its end
constexpr milliseconds kShortestWait{5}, kLongestWait{100};

// The files and signals that the child starts with.
class Spawn {
 public:
  Spawn(int output, const ChildProcess& process) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files_, output, STDERR_FILENO);
    // Duplicating a descriptor onto itself lets the child keep it.
    if (const int kept = process.keep_open; kept >= 0) posix_spawn_file_actions_adddup2(&files_, kept, kept);
    if (!process.folder.empty()) posix_spawn_file_actions_addchdir_np(&files_, process.folder.c_str());
    posix_spawnattr_init(&attributes_);
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);  // settrain ignores it
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
  }
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;
  ~Spawn() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }

  // Returns 0, or the system's error code.
  int start(std::vector<std::string> command, pid_t& child) const {
    std::vector<char*> argv;
    for (std::string& word : command) argv.push_back(word.data());
    argv.push_back(nullptr);
    return ::posix_spawnp(&child, argv[0], &files_, &attributes_, argv.data(), environ);
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

int wait_for(pid_t child, const std::function<void()>& meanwhile) {
  int status = 0;
  for (milliseconds wait = kShortestWait;; wait = std::min(2 * wait, kLongestWait)) {
    const pid_t ended = ::waitpid(child, &status, meanwhile ? WNOHANG : 0);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) throw Error(fmt::format("cannot wait for a program: {}", std::strerror(errno)));
    if (ended != 0) continue;
    try {
      meanwhile();
    } catch (...) {
      ::kill(child, SIGTERM);
      while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      throw;
    }
    std::this_thread::sleep_for(wait);
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string end_of(const Descriptor& file) {
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  const off_t start = std::max<off_t>(size - kMostPrinted, 0);
  std::string text(static_cast<size_t>(std::max<off_t>(size, 0) - start), '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), start);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

}  // namespace

ChildEnd run_child(const ChildProcess& process) {
  const std::string& name = process.command.at(0);
  // A file in memory takes any length; a pipe would have to be emptied meanwhile.
  const Descriptor output(::memfd_create("output", MFD_CLOEXEC));
  pid_t child = 0;
  const int code = output.is_open() ? Spawn(output.get(), process).start(process.command, child) : errno;
  if (code == ENOENT) {
    throw Error(fmt::format(
        "there is no {0} in PATH. It is in Debian's and Ubuntu's package {1}; elsewhere, in the system's own "
        "package of {0}; without root, in the package {0} of conda-forge, whose folder bin then goes into PATH",
        name, process.package));
  }
  if (code != 0) throw Error(fmt::format("{} cannot be started: {}", name, std::strerror(code)));
  const int end = wait_for(child, process.meanwhile);
  return {end, end_of(output)};
}

}  // namespace settrain
