#include "src/figure/gnuplot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "src/core/descriptor.h"
#include "src/core/error.h"

namespace settrain {
namespace {

[[noreturn]] void fail_to_start(int code) {
  if (code == ENOENT) {
    throw Error("there is no gnuplot in PATH, which draws the figures: install Debian's package gnuplot-nox");
  }
  throw Error(fmt::format("gnuplot cannot be started: {}", std::strerror(code)));
}

// What becomes of the child's files, folder and signals.
class Spawn {
 public:
  Spawn(const std::filesystem::path& folder, int output) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files_, output, STDERR_FILENO);
    posix_spawn_file_actions_addchdir_np(&files_, folder.c_str());
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

  pid_t start(std::vector<std::string> arguments) const {
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_t child = 0;
    const int code = ::posix_spawnp(&child, argv[0], &files_, &attributes_, argv.data(), environ);
    if (code != 0) fail_to_start(code);
    return child;
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

std::string read_to_end(const Descriptor& input) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t size = ::read(input.get(), buffer, sizeof buffer);
    if (size > 0) text.append(buffer, static_cast<size_t>(size));
    if (size == 0 || (size < 0 && errno != EINTR)) return text;
  }
}

}  // namespace

std::string run_gnuplot(const std::filesystem::path& folder, const std::vector<std::string>& arguments) {
  if (!std::filesystem::is_directory(folder)) throw file_error("open", folder, ENOENT);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_to_start(errno);
  const Descriptor output(ends[0]);
  Descriptor input(ends[1]);

  std::vector<std::string> command{"gnuplot", "-d"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const pid_t child = Spawn(folder, input.get()).start(command);
  input.close();
  std::string printed = read_to_end(output);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  while (!printed.empty() && std::isspace(static_cast<unsigned char>(printed.back()))) printed.pop_back();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return printed;

  const std::string end = WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                                              : fmt::format("failed with exit code {}", WEXITSTATUS(status));
  throw Error(fmt::format("gnuplot {}{}", end, printed.empty() ? "" : ":\n" + printed));
}

}  // namespace settrain
